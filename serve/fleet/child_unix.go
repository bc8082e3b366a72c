//go:build unix && !linux

package fleet

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's Ctrl-C away from the child. When we die, the end of its standard
// input tells it to leave (F3).
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
