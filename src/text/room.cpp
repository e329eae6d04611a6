// Keeps the room 'text' a library while it is being filled.
