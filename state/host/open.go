package host

import "strings"

// open wires the doors to one another: a write tells whoever read what it changed.
func open(o Options, relocated bool) (*Host, error) {
	refused := relocated && !o.Chroot && o.Commands == nil
	accounts := &accounts{recorder: o.Recorder, refused: refused}
	files, err := openTree(o.Root, relocated, o.Recorder, func(path string) {
		if strings.HasPrefix(path, "/etc/") {
			accounts.forget()
		}
	})
	if err != nil {
		return nil, err
	}
	accounts.files, accounts.commands = files, o.Commands
	if o.Commands == nil {
		own := &commands{refused: refused, changed: accounts.forget}
		if o.Chroot {
			own.chroot = strings.TrimRight(o.Root, "/")
		}
		accounts.commands = own
	}
	crontabs := &crontabs{files: files, commands: accounts.commands, accounts: accounts, recorder: o.Recorder, refused: refused, read: &parsed{}}
	return &Host{Files: files, Commands: accounts.commands, Accounts: accounts, Crontabs: crontabs, parsed: &parsed{}}, nil
}
