package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pushed is the input that a command of ann's pushes into a terminal.
const pushed = "touch pwned"

// pushInput pushes input into every terminal that this process can reach with TIOCSTI.
func pushInput() {
	fds := []int{0, 1, 2}
	if fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		fds = append(fds, fd)
	}
	for _, fd := range fds {
		for _, c := range []byte(pushed) {
			if err := unix.IoctlSetPointerInt(fd, unix.TIOCSTI, int(c)); err != nil {
				fmt.Println(fd, err)
				break
			}
		}
	}
}

// TestPushedInput has an agent that was started in a terminal run commands of ann's and of root's.
func TestPushedInput(t *testing.T) {
	if data, err := os.ReadFile("/proc/sys/dev/tty/legacy_tiocsti"); err == nil && strings.TrimSpace(string(data)) == "0" {
		t.Skip("this kernel refuses pushed input (dev.tty.legacy_tiocsti is 0)")
	}
	s := newStates(t, "entered")
	program := "/opt/corpus/pusher"
	for name, state := range map[string]string{
		"nothing": "",
		"cmd.run": "p:\n  cmd.run:\n    - name: " + program + "\n    - runas: ann\n    - env: [{" + asPusher + ": '1'}]\n",
		"use_vt": "p:\n  cmd.run:\n    - name: " + program + "\n    - runas: ann\n    - use_vt: True\n    - env: [{" +
			asPusher + ": '1'}]\n",
		"unless": "p:\n  cmd.run:\n    - name: 'true'\n    - runas: ann\n    - unless: " + program + "\n    - env: [{" +
			asPusher + ": '1'}]\n",
		"cmd.script": "p:\n  cmd.script:\n    - name: s\n    - source: salt://pusher\n    - runas: ann\n    - env: [{" +
			asPusher + ": '1'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			s.begin()
			s.must(os.WriteFile(s.dir+"/srv/states/pusher", []byte("#!/bin/sh\nexec "+program+"\n"), 0o755))
			s.must(os.WriteFile(s.dir+"/srv/states/attack.sls", []byte(state), 0o644))
			cmd := s.inside("corpus-agent", "call", "state.apply", "attack", "--states", "/srv/states")
			if name == "nothing" { // the attacker runs without the agent, which proves that the test can fail
				cmd = s.inside("pusher")
				cmd.Env = append(cmd.Env, "CORPUS_ATTACK_KEEP="+asPusher)
			}
			typed := inTerminal(s.world, cmd)
			if got := strings.Contains(typed, pushed); got != (name == "nothing") {
				t.Errorf("the terminal holds the input %q", typed)
			}
		})
	}
}

// inTerminal runs a program in a new terminal and returns the input that the shell that started it would read next.
func inTerminal(w *world, cmd *exec.Cmd) string {
	w.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	w.must(err)
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	w.must(err)
	w.must(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	w.must(err)
	defer slave.Close()
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	w.must(err)
	modes.Lflag &^= unix.ECHO | unix.ICANON
	w.must(unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(cmd.Env, "PATH=/usr/bin:/bin", "HOME=/root")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0, Unshareflags: syscall.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	w.must(cmd.Start())
	timer := time.AfterFunc(runTimeout, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	go func() { // the terminal's buffer must not fill up
		buf := make([]byte, 4096)
		for {
			if _, err := master.Read(buf); err != nil {
				return
			}
		}
	}()
	_ = cmd.Wait()
	fd := int(slave.Fd()) // a second call of Fd would make reads block
	w.must(unix.SetNonblock(fd, true))
	buf := make([]byte, 4096)
	var typed string
	for {
		n, err := unix.Read(fd, buf)
		if n <= 0 || err != nil {
			return typed
		}
		typed += string(buf[:n])
	}
}
