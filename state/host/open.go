package host

import "strings"

// open wires the doors to one another: a write tells whoever read what it changed.
func open(o Options, relocated bool) (*Host, error) {
	refused := relocated && !o.Chroot
	commands := &commands{refused: refused}
	if o.Chroot {
		commands.chroot = strings.TrimRight(o.Root, "/")
	}
	accounts := &accounts{refused: refused}
	files, err := openTree(o.Root, relocated, o.Recorder, func(path string) {
		if strings.HasPrefix(path, "/etc/") {
			accounts.forget()
		}
	})
	if err != nil {
		return nil, err
	}
	accounts.files = files
	commands.changed = accounts.forget
	return &Host{Files: files, Commands: commands, Accounts: accounts}, nil
}
