package host

import (
	"fmt"
	"os"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host/network"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/host/dialog"
)

// Caches connects a Host to caches of its data, such as those that package machine opens. Each function may be nil.
type Caches struct {
	Changed func(path string) // called when a file was written, created or removed
	Forget  func()            // called when anything may have changed: a command ran, or a read failed
}

// Open opens the files, commands, kernel and network of a host. Accounts, Crontabs, Packages and Units stay nil:
// package machine opens them.
func Open(o Options, c Caches) (*Host, error) {
	if o.Chroot && os.Geteuid() != 0 {
		return nil, fmt.Errorf("entering %s needs root", o.Root)
	}
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	parsed, forget := &ParseCache{}, c.Forget
	if o.Commands == nil { // other commands do not say when they have run
		parsed.tables = map[parsedKey]any{}
	}
	c.Forget = func() {
		parsed.forget()
		if forget != nil {
			forget()
		}
	}
	files, err := openTree(o.Root, o.Relocated(), o, c.Changed)
	if err != nil {
		return nil, err
	}
	var talk func(Command) (*dialog.Dialog, error)
	if o.Commands == nil {
		own := ownCommands(o, o.Refuses(), c.Forget)
		own.machineErrors, own.files, talk = files.machineErrors, files, own.talk
	}
	return &Host{
		Files: files, Commands: commandsOf(o, files, c.Forget), talk: talk, Network: network.Of(files),
		Kernel: kernel{o.Offline(), o.Recorder},
		Env:    NewEnvironment(loginOf(process.Environ(), os.Geteuid())...), parsed: parsed, recorder: o.Recorder,
		machineErrors: files.machineErrors, forget: c.Forget,
	}, nil
}

// commandsOf returns the Commands of the options, or those of the host, and adds the observers of the options.
func commandsOf(o Options, files *tree, changed func()) Commands {
	run := o.Commands
	if run == nil {
		own := ownCommands(o, o.Refuses(), changed)
		own.machineErrors, own.files, run = files.machineErrors, files, own
	}
	if o.Failed != nil {
		run = failureObserver{run, o.Failed}
	}
	return &namedCommands{run, o.Recorder, files.left}
}

// ownCommands returns Commands that run on this machine, inside the root if that is a system tree to enter.
func ownCommands(o Options, refused bool, changed func()) *commands {
	c := &commands{refused: refused, changed: changed}
	if o.Chroot {
		c.chroot = strings.TrimRight(o.Root, "/")
	}
	return c
}

// BootedWithSystemd reports whether systemd runs the machine, by the same directory as sd_booted(3).
func BootedWithSystemd(files Files) bool {
	info, err := files.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}
