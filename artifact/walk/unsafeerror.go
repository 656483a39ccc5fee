package walk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// UnsafeError is the error for a step that an unprivileged user could have prepared: a link whose target does not
// belong to the user who owns the link, or who could replace it by writing to a directory on the way. Root and the
// program's own user are privileged. In a sticky directory only owners can replace names. If a directory is writable
// for a group, or for all users, its writers must be able to write to the link's target by the same right, or own it. A
// group counts whether or not it has members: see groupOf.
//
// A file (or link, device, pipe, socket) with several names in such a directory that does not belong to that user is
// refused in the same way, since the user may have given it that name.
type UnsafeError struct {
	Path      string // the path that was to be opened
	Component string // the link, or the file with several names
	By        string // party that controls it: "user 1000", "group 50", "any user"
	Owner     int    // the owner of the target
	OwnerName string // the owner's name, "" if unknown
	Raised    bool   // a file was about to get setuid or setgid bits: see MayRaise
	Program   bool   // a program was about to get the path: see ByName
	Tree      bool   // a program was about to run on a tree with this part: see CheckRootOnly
	Runner    string // the name of the user who would have run that program; "" for root
	Source    bool   // its content was about to be used: see Root.Source
	Into      string // destination of the content; "" for instructions to root
	OfOwner   bool   // with Raised: the owner of the present file, or the user it was taken from, is the reason
}

func (e *UnsafeError) Error() string {
	path, component := Clip(e.Path), Clip(e.Component)
	if e.Raised {
		return fmt.Sprintf("%s: setuid and setgid bits are refused, since %s may have put the program there", path, e.By)
	}
	if e.Source && e.Into != "" {
		return fmt.Sprintf("%s: refused, since %s controls %s, and could so change %s", path, e.By, component, e.Into)
	}
	if e.Source {
		return fmt.Sprintf("%s: refused, since %s can change it, and root would act on its content", path, e.By)
	}
	if e.Tree {
		return fmt.Sprintf("%s: refused, since %s is controlled by %s, who could have a program that %s runs there run "+
			"another", path, component, e.By, cmp.Or(e.Runner, "root"))
	}
	if e.Program {
		return fmt.Sprintf("%s: refused, since %s is controlled by %s, who could exchange a part of the path while a "+
			"program follows it", path, component, e.By)
	}
	return fmt.Sprintf("%s: refused, since %s is controlled by %s and leads to a file or directory of user %s", path,
		component, e.By, cmp.Or(e.OwnerName, strconv.Itoa(e.Owner)))
}

// AboutFile marks the error as one about a file of the host: see diag.ObjectOf.
func (e *UnsafeError) AboutFile() {}

// Named returns the error with names of accounts instead of numbers. The functions return "" for a number without a
// name.
func (e *UnsafeError) Named(user, group func(id int) string) *UnsafeError {
	named := *e
	named.OwnerName = user(e.Owner)
	kind, number, _ := strings.Cut(e.By, " ")
	name := map[string]func(int) string{"user": user, "group": group}[kind]
	if id, err := strconv.Atoi(number); err == nil && name != nil && name(id) != "" {
		named.By = kind + " " + name(id)
	}
	return &named
}

// Hint returns a remedy.
func (e *UnsafeError) Hint() string { return diag.Exposed.Coded(e.remedy()) }

func (e *UnsafeError) remedy() string {
	if e.Raised {
		hint := "make such programs in a directory where root alone may write"
		if strings.HasPrefix(e.By, "user ") {
			hint += ", or have them run as " + e.By + ", with `user` and for setgid bits `group`"
		}
		return hint
	}
	if e.Source && e.Into != "" && strings.HasPrefix(e.By, "user ") {
		return "take it from where root alone may write, such as the signed part of a release, or let what is made of it " +
			"belong to " + e.By
	}
	if e.Source {
		return "put it where root alone may write, such as the signed part of a release, and give it to root"
	}
	if e.Tree {
		return CopyHint(e.Path, e.Runner)
	}
	if e.Program {
		return "use a path below directories where root alone may write"
	}
	return fmt.Sprintf("look at %s with ls -l: remove it, or make its target belong to %s", e.Component, e.By)
}

// CopyHint returns a hint to copy a tree that other users could write to, so that it belongs to the user who runs
// programs in it, "" for root. A recursive chown would not be safe: it would also give that user files that another
// user has just put there, and other users could still write to files that they have open.
func CopyHint(path, user string) string {
	as := ""
	if user != "" && user != "root" {
		as = "runuser -u " + user + " -- "
	}
	return fmt.Sprintf("copy it, and look at what is in the copy: umask 022; %[2]scp -PR %[1]s %[1]s.new; "+
		"%[2]ssetfacl -R -b %[1]s.new; then put the copy in place: mv -T %[1]s %[1]s.old && mv -T %[1]s.new %[1]s; "+
		"chown -R is not safe there", path, as)
}

// Loop is the error of a path that is not followed to its end: its links form a loop, there are too many of them, or a
// link is where none is followed.
type Loop struct{ Path string }

func (e *Loop) Error() string { return unix.ELOOP.Error() }

// Unwrap returns the error of the kernel.
func (e *Loop) Unwrap() error { return unix.ELOOP }

// Hint returns how to find the link.
func (e *Loop) Hint() string { return diag.Path.Coded(LoopHint(e.Path)) }

// LoopHint returns a hint to find the link in a path that is not followed to its end.
func LoopHint(path string) string {
	return "links in the path form a loop, or a link is where none is followed; find it with: namei -l " + path
}

// ExplainLoop adds LoopHint to an error without a hint for a path with a loop of links. It returns other errors as they
// are.
func ExplainLoop(err error) error {
	var at *fs.PathError
	if diag.HintOf(err) != "" || !errors.Is(err, unix.ELOOP) || !errors.As(err, &at) {
		return err
	}
	return diag.Path.Hint(err, "%s", LoopHint(at.Path))
}
