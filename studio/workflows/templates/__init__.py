"""Templates of the start form: params that people have named, without secrets."""
