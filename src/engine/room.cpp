// Keeps the room 'engine' a library while it is being filled.
