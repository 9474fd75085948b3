// The end of the program that the option `halt` asks for.
#pragma once

namespace numsan {

/// Ends the program as it would end itself, with what it does at its exit: by SystemExit in the main thread of Python,
/// which is raised when that thread next runs Python code, or by exit() in the main thread of a program without Python.
/// May return. A program that has not ended after some seconds is ended by _exit(). Called once, on any thread.
void leave_program(int status);

}  // namespace numsan
