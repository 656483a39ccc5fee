package binding

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// users returns a user namespace with the mapping of a mount. Linux takes such a mapping only as a namespace, and a
// namespace needs a process that begins in it.
func (b Binding) users() (*os.File, error) {
	cmd := exec.Command("/bin/cat") // it runs until its input ends
	process.Detach(cmd)
	cmd.Env = process.Clean()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: b.UID, HostID: b.As, Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: b.GID, HostID: b.As, Size: 1}}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("making a user namespace: %w", err)
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
	_ = input.Close()
	_ = cmd.Wait() // it has no result
	return namespace, err
}
