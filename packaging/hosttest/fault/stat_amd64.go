package fault

import "golang.org/x/sys/unix"

// statAt is the call behind os.Stat.
const statAt = unix.SYS_NEWFSTATAT
