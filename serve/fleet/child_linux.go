package fleet

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps a terminal's Ctrl-C away from the child, so that it can finish what is live,
// and has the kernel kill it when we die (F3).
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
