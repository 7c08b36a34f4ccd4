SECTIONS: dict = {}
