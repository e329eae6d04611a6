// Keeps the room 'io' a library while it is being filled.
