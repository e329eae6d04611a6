// Keeps the room 'backend/reference' a library while it is being filled.
