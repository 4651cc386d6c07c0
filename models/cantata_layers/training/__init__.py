"""What trainings of models share; not in the wheel."""
