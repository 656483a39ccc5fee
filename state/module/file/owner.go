package file

import (
	"fmt"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ownership holds the arguments that set the owner of a file.
type ownership struct {
	User  any `sls:"user"`
	Owner any `sls:"owner"` // an alias of user
	Group any `sls:"group"`
}

// owner is an ownership resolved to numeric IDs.
type owner struct {
	user, group any // for reports; nil to keep the present one
	uid, gid    int // -1 to keep the present one
	settable    bool
	notes       []string
	problem     error // a user or group does not exist
}

// resolve looks up the numeric IDs. A missing account is an error only in Apply: in a dry run, a state that
// runs earlier may create it.
func (o ownership) resolve(h *host.Host) (owner, error) {
	user := o.User
	if !value.Truth(user) {
		user = o.Owner
	}
	w := owner{uid: -1, gid: -1, settable: h.Files.CanChown()}
	if err := w.set(h, "user", user); err != nil {
		return w, err
	}
	return w, w.set(h, "group", o.Group)
}

// orRoot returns the ownership with defaults for arguments that are not set: root, and the user's own group.
func (o ownership) orRoot(h *host.Host) ownership {
	if n, ok := o.User.(int); !value.Truth(o.User) && !(ok && n == 0) {
		o.User = o.Owner
	}
	if o.User == nil {
		o.User = "root"
		if _, known, err := h.Accounts.User("root"); !known || err != nil {
			o.User = 0
		}
	}
	uid, known, err := identify(h, "user", o.User)
	if o.Group != nil || !known || err != nil {
		return o
	}
	o.Group = 0
	if u, ok, err := h.Accounts.UserByID(uid); ok && err == nil {
		o.Group = u.GID
		if g, ok, err := h.Accounts.GroupByID(u.GID); ok && err == nil {
			o.Group = g.Name
		}
	}
	return o
}

func (w *owner) set(h *host.Host, kind string, who any) error {
	// The number 0 is root; "" and false mean that no account is given.
	if n, ok := who.(int); !ok && !value.Truth(who) || ok && n < 0 {
		return nil
	}
	id, known, err := identify(h, kind, who)
	if err != nil {
		return fmt.Errorf("looking for %s %s: %w", kind, value.Str(who), err)
	}
	if !known {
		return w.unknown(h, kind, value.Str(who), who)
	}
	if kind == "user" {
		w.user, w.uid = who, id
	} else {
		w.group, w.gid = who, id
	}
	return nil
}

func (w *owner) unknown(h *host.Host, kind, name string, who any) error {
	missing := fmt.Errorf("there is no %s %s", kind, name)
	if !w.settable || h.Accounts.Allowed(kind+" "+name) != nil {
		w.notes = append(w.notes, missing.Error()+" here, so the owner is not changed")
		return nil
	}
	if w.problem == nil {
		w.problem = host.WithMissing(diag.Prerequisite.Hint(
			missing, "create it with %s.present and let this state require that",
			kind),
			host.Thing(kind), name)
	}
	if kind == "user" {
		w.user = who
	} else {
		w.group = who
	}
	return nil
}

// lacks returns the accounts that must exist before the owner can be set.
func (w *owner) lacks() []error {
	if w.problem == nil {
		return nil
	}
	return []error{w.problem}
}

// identify returns the ID of an account that is given by name or number.
func identify(h *host.Host, kind string, who any) (id int, known bool, err error) {
	if n, ok := who.(int); ok {
		return n, true, nil
	}
	name := value.Str(who)
	if kind == "user" {
		u, ok, err := h.Accounts.User(name)
		if ok || err != nil {
			return u.UID, ok, err
		}
	} else {
		g, ok, err := h.Accounts.Group(name)
		if ok || err != nil {
			return g.GID, ok, err
		}
	}
	id, notNumber := strconv.Atoi(name)
	return id, notNumber == nil && id >= 0, nil
}

// differs reports which of user and group differ from the wanted ones. If the process cannot change owners, it
// reports neither and adds a note.
func (w *owner) differs(info host.Info) (user, group bool) {
	user = w.user != nil && info.UID != w.uid
	group = w.group != nil && info.GID != w.gid
	if !w.settable && (user || group) {
		w.note()
		return false, false
	}
	return user, group
}

func (w *owner) note() {
	const text = "only root can change the owner of files, so the owner is not changed"
	for _, n := range w.notes {
		if n == text {
			return
		}
	}
	w.notes = append(w.notes, text)
}

// ids returns the IDs to set; -1 keeps the present one.
func (w *owner) ids() (uid, gid int) {
	if !w.settable {
		return -1, -1
	}
	return w.uid, w.gid
}
