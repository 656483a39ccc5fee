package fault

import "golang.org/x/sys/unix"

// statAt is the system call of os.Stat.
const statAt = unix.SYS_NEWFSTATAT
