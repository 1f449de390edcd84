"""What can be a teacher: a classifier, a function, a command or a prompt, behind one waist.

Begin with :mod:`~quorate.ensemble.teachers.teacher`.
"""
