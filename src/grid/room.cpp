// Keeps the room 'grid' a library while it is being filled.
