// Keeps the room 'layers' a library while it is being filled.
