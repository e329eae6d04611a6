// Keeps the room 'tensor' a library while it is being filled.
