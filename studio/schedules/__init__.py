"""The timetable of schedules."""
