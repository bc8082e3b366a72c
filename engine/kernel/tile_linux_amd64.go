package kernel

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// tilePermission asks the system for the tile registers, once for the whole process.
func tilePermission() error {
	const request, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	if _, _, e := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, tileData, 0); e != 0 {
		return fmt.Errorf("the system does not permit them: %w", e)
	}
	return nil
}
