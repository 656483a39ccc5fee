package packages

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Killed is the error of a package manager, or of a program that it ran, that a signal ended. The kernel sends SIGKILL
// where memory runs out.
type Killed struct {
	Program string
	Signal  string // its name, such as SIGKILL, or "a signal" if that is unknown
	Script  bool   // Program is a script of a package, which may have taken all of the memory
}

func (k *Killed) Error() string { return k.Program + " was ended by " + k.Signal }

// HostFault is part of diag.HostFault.
func (*Killed) HostFault() {}

// Hint suggests where to look for the reason.
func (k *Killed) Hint() string {
	switch {
	case k.Script:
		return diag.Packages.Coded("the kernel kills a process where memory runs out, which `journalctl -k` shows; " +
			"otherwise see what the script does")
	case k.Signal == sigkill || k.Signal == unknownSignal:
		return diag.Packages.Coded("the kernel kills a process where memory runs out, which `journalctl -k` shows; " +
			"the next run tries again")
	}
	return diag.Packages.Coded("see `journalctl` for what ended it; the next run tries again")
}

const (
	sigkill       = "SIGKILL"
	unknownSignal = "a signal"
)

// ofHost is an error of a package manager with the error number of the host that its output names.
type ofHost struct {
	error

	errno syscall.Errno
}

func (o *ofHost) Unwrap() error { return o.errno }

// faultOfHost returns an error with a cause and a hint if a failed program was killed or printed an error of the host,
// and nil for another failure. room suggests how to make room on a full disk.
func faultOfHost(what, program string, out host.Output, room string) error {
	if signal := signalOf(out); signal != "" {
		return fmt.Errorf("%s: %w", what, &Killed{Program: program, Signal: signal})
	}
	if errno, said := printedFault(out); errno != 0 {
		said = redact.URLs(strings.Join(strings.Fields(said), " "))
		return diag.Packages.Hint(&ofHost{fmt.Errorf("%s: %s", what, said), errno}, "%s", hintOf(errno, room))
	}
	if k := killedIn(out.Stderr + "\n" + out.Stdout); k != nil {
		return fmt.Errorf("%s: %w", what, k)
	}
	return nil
}

// signalOf returns the name of the signal that ended a program, or "".
func signalOf(out host.Output) string { return unix.SignalName(syscall.Signal(out.Code - 128)) }

// hintOf returns the hint about an error number.
func hintOf(errno syscall.Errno, room string) string {
	switch errno {
	case syscall.ENOSPC, syscall.EDQUOT:
		return room
	case syscall.EIO, syscall.EROFS:
		return "see `dmesg`: the disk may be failing; the next run tries again"
	case syscall.EMFILE:
		return "see `ulimit -n`, and `lsof` for what holds files open; the next run tries again"
	}
	return "the host is short of memory: see `free -m` and MemoryMax= of the unit; the next run tries again"
}

// printedFault returns the error of the host that a failed package manager printed, with its message, or 0. A full disk
// may be in any line. Other errors count only in messages of the package manager and in the last lines of a script that
// failed, since scripts that succeed print such warnings in containers.
func printedFault(out host.Output) (syscall.Errno, string) {
	text := out.Stderr + "\n" + out.Stdout
	for _, said := range append(errorLines().FindAllString(text, -1), scriptsIn(out)) {
		if errno := process.PrintedByHost(said); errno != 0 {
			return errno, messagePrefix().ReplaceAllString(said, "")
		}
	}
	for line := range strings.Lines(text) {
		for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
			if process.Printed(line, errno) {
				return errno, line
			}
		}
	}
	return 0, ""
}

// errorLines matches messages of package managers, with the indented line in which dpkg has the reason.
func errorLines() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:E: |(?i:error|fatal)\b|\w+Error: |\[Errno |dpkg(?:-\w+)?(?: \(subprocess\))?: ` +
		`(?:error|unrecoverable))[^\n]*(?:\n[ \t][^\n]*)?`)
}

// messagePrefix matches the start of a message that only says that it is an error.
func messagePrefix() *regexp.Regexp {
	return regexp.MustCompile(`^(?:E|(?i:error)|dpkg: error): |^dpkg: error processing `)
}

// killedIn returns the program that a signal ended by the messages of apt, dpkg and rpm, or nil.
func killedIn(text string) *Killed {
	if m := endedProgram().FindStringSubmatch(text); m != nil {
		signal := unknownSignal
		if number, err := strconv.Atoi(m[2]); err == nil {
			signal = cmp.Or(unix.SignalName(syscall.Signal(number)), signal)
		} else if m[3] != "" {
			signal = unix.SignalName(unix.SIGSEGV)
		}
		return &Killed{Program: path.Base(m[1] + m[4]), Signal: signal}
	}
	if m := killedChild().FindStringSubmatch(text); m != nil {
		program := strings.TrimSpace(strings.Join(m[1:], ""))
		return &Killed{Program: program, Signal: sigkill, Script: strings.Contains(program, "script")}
	}
	return nil
}

// endedProgram matches messages of apt about dpkg, and about its own programs.
func endedProgram() *regexp.Regexp {
	return regexp.MustCompile(
		`Sub-process (\S+) (?:exited unexpectedly|received (?:signal (\d+)|(a segmentation fault)))|Method (\S+) has died`)
}

// killedChild matches messages about a program or script that SIGKILL ended. A shell reports that as status 137.
func killedChild() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^[ \t]*(?:dpkg(?:-\w+)?: error: )?(?:` +
		`([^\n:]+) subprocess was killed by signal \(Killed\)|subprocess ([^\n:]+) was killed by signal \(Killed\)|` +
		`([^\n:]+ script) subprocess returned error exit status 137|` +
		`subprocess ([^\n:]+ script) returned error exit status 137|` +
		`(?:warning: |error: )?([^\n]+ scriptlet) failed, (?:signal 9|exit status 137)\b)`)
}

// fullDisk matches messages about too little space without an error number.
func fullDisk() *regexp.Regexp {
	return regexp.MustCompile(`(?i)enough free space in \S|more space needed on the|` +
		`needs \d+[^\n]* on the \S+ filesystem|` +
		`Partition \S+ too full|not enough free disk space|(?:not enough|insufficient) (?:disk )?space`)
}

// orFull returns err with ENOSPC if the output says that there is too little space.
func orFull(out host.Output, err error) error {
	if fullDisk().MatchString(out.Stderr + "\n" + out.Stdout) {
		return diag.KeepHint(&ofHost{err, syscall.ENOSPC}, diag.HintOf(err))
	}
	return err
}

// withoutRemarks returns the output without lines of apt and debconf that appear in successful runs as well.
func withoutRemarks(out host.Output) host.Output {
	out.Stderr = remarks().ReplaceAllString(out.Stderr, "")
	out.Stdout = remarks().ReplaceAllString(out.Stdout, "")
	return out
}

func remarks() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(?:(?:[EW]: )?Can not write log \(|debconf: (?:delaying package configuration|` +
		`unable to initialize frontend|falling back to frontend|\()|dpkg-preconfigure: unable to re-open stdin)[^\n]*\n?`)
}

// roomIn returns the hint about a full disk among the clues of a package manager.
func roomIn(clues []clue) string {
	const start = "make room there"
	if i := slices.IndexFunc(clues, func(c clue) bool { return strings.HasPrefix(c.hint, start) }); i >= 0 {
		return clues[i].hint
	}
	return start
}
