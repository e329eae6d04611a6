// Keeps the room 'ops' a library while it is being filled.
