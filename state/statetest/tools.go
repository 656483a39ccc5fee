package statetest

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/binding"
)

// Tool imitates a program of the system. It receives the words of its command line without the program itself, and its
// standard input. It returns its output; the text of an error is its error output, and the error's Code, or 1, its exit
// code.
type Tool func(args []string, stdin string) (string, error)

// Code is an error with an exit code.
type Code struct {
	Code int
	Text string
}

func (c Code) Error() string { return c.Text }

// UseTools creates programs in /usr/sbin of a host and imitates them. It appends the command line of each call to
// /tools.log, except for those that only read.
func UseTools(t *testing.T, h *Host, tools map[string]Tool) {
	t.Helper()
	for name := range tools {
		h.mkdirs(t, "/usr/sbin")
		h.place(t, "/usr/sbin/"+name, Entry{Kind: "file", Mode: "0755"})
	}
	h.Commands = Commands(func(c host.Command) (host.Output, error) {
		name := path.Base(c.Argv[0])
		tool, ok := tools[name]
		if !ok {
			return host.Output{}, fmt.Errorf("the case does not imitate %s", name)
		}
		if !c.Quiet {
			h.Append("/tools.log", strings.Join(append([]string{name}, c.Argv[1:]...), " ")+"\n")
		}
		out, err := tool(c.Argv[1:], c.Stdin)
		if err == nil {
			return host.Output{Stdout: out}, nil
		}
		own := Code{Code: 1}
		_ = errors.As(err, &own)
		return host.Output{Code: own.Code, Stdout: out, Stderr: err.Error() + "\n"}, nil
	})
}

// Text returns the content of a file, or "" if it does not exist.
func (h *Host) Text(file string) string {
	data, _ := h.Files.ReadFile(file)
	return string(data)
}

// Put writes a file of the case's tree as a tool would.
func (h *Host) Put(file, text string) {
	if err := h.WriteText(file, text); err != nil {
		panic(err) // the test has created the directory
	}
}

// Append adds to a file of the case's tree.
func (h *Host) Append(file, text string) { h.Put(file, h.Text(file)+text) }

// kernel is the running system of a case; if /chroot exists, it cannot be changed.
type kernel struct{ h *Host }

// Allowed returns an error if /chroot exists.
func (k kernel) Allowed(what string) error {
	if _, err := k.h.Files.Lstat("/chroot"); err == nil {
		return &host.Skipped{What: what}
	}
	return nil
}

// Hostname reads /proc/sys/kernel/hostname.
func (k kernel) Hostname() (string, error) {
	return strings.TrimSpace(k.h.Text("/proc/sys/kernel/hostname")), nil
}

// SetHostname writes /proc/sys/kernel/hostname.
func (k kernel) SetHostname(name string) error {
	k.h.Put("/proc/sys/kernel/hostname", name+"\n")
	return nil
}

// Bound compares a binding with the one in the file of its place.
func (k kernel) Bound(b binding.Binding) (bool, error) {
	return k.h.Text(b.At) == fmt.Sprintf("%+v", b), nil
}

// Bind writes a binding into a file at its place.
func (k kernel) Bind(b binding.Binding) error {
	k.h.Put(b.At, fmt.Sprintf("%+v", b))
	return nil
}

// Unbind removes that file.
func (k kernel) Unbind(at string) error { return k.h.Files.Remove(at) }
