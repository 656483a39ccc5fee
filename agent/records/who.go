package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file stores the identity of the host and its store beside the releases of a service. A host that has lost its
// ledger, the copy of that and its reports, and whose name has no identity, continues with it.

// who is the content of the file.
type who struct {
	Host ledger.Host `json:"host"`
	As   *ledger.As  `json:"as"`
}

// saveWho writes the file of the deployed service, and removes those of services that were deployed before.
func (rs *Records) saveWho(book *ledger.Ledger) error {
	if rs.Alone != "" || book.As == nil || book.Good == nil || book.Good.Service.Project != book.As.Service {
		return nil
	}
	project := rs.LayoutOf(book.As.Service)
	if found, err := walk.Directory(project.Dir); err != nil || !found {
		return err
	}
	want, err := json.MarshalIndent(who{book.Host, book.As}, "", "  ")
	if err != nil {
		return err
	}
	if have, _, unread := walk.Read(project.Who()); unread == nil && bytes.Equal(have, want) {
		return nil
	}
	return errors.Join(durable.WriteFile(project.Who(), want, 0o600), rs.removeOtherWho(project.Dir))
}

// removeOtherWho removes the files from the directories of all projects but one.
func (rs *Records) removeOtherWho(keep string) error {
	dirs, err := rs.ProjectDirs()
	for _, dir := range dirs {
		if dir != keep {
			err = errors.Join(err, durable.Remove(rs.LayoutOf(filepath.Base(dir)).Who()))
		}
	}
	return err
}

// recallWho adds the identity from the file to a rebuilt ledger: the file of the service that /srv/service leads to, or
// the only one. It ignores the file of another machine, of which this one is a clone. unusable describes files that
// cannot be used.
func (rs *Records) recallWho(book *ledger.Ledger) (unusable string, err error) {
	if rs.Alone != "" {
		return "", nil
	}
	dirs, err := rs.ProjectDirs()
	if err != nil {
		return "", err
	}
	machine, err := rs.Machine()
	if err != nil {
		return "", err
	}
	linked, err := os.Readlink(rs.Layout.ServiceLink())
	if err = IgnoreNoLink(err); err != nil {
		return "", err
	}
	var found []*who
	for _, dir := range dirs {
		name := filepath.Base(dir)
		w, unread := rs.readWho(name)
		if unread != nil {
			unusable += fmt.Sprintf("; the identity of this host cannot be read from %s: %v",
				rs.Layout.Inside(rs.LayoutOf(name).Who()), unread)
		}
		if w == nil || w.As == nil || w.As.Service != name || w.As.Machine != machine || name == artifact.Base {
			continue
		}
		if name == filepath.Base(linked) {
			found = []*who{w}
			break
		}
		found = append(found, w)
	}
	if len(found) == 1 {
		book.As = found[0].As
		if book.Host == (ledger.Host{}) {
			book.Host = found[0].Host
		}
	}
	return unusable, nil
}

// mostWho bounds how many bytes of the file are read.
const mostWho = 64 << 10

// readWho reads the file of a project; nil if there is none. It does not use a file that another user could have
// written.
func (rs *Records) readWho(project string) (*who, error) {
	p := rs.LayoutOf(project)
	opened, root, err := rs.OpenTrusting()
	if err != nil {
		return nil, err
	}
	if root == nil {
		data, found, err := walk.Read(p.Who())
		if err != nil || !found {
			return nil, err
		}
		return decodeWho(data)
	}
	defer opened.Close()
	data, err := readSole(root, rs.Layout.Inside(p.Who()))
	if err != nil || data == nil {
		return nil, err
	}
	return decodeWho(data)
}

func decodeWho(data []byte) (*who, error) {
	w := &who{}
	if err := json.Unmarshal(data, w); err != nil {
		return nil, diag.Records.Hint(fmt.Errorf("it is damaged: %w", err), "remove it; the next deploy writes it again")
	}
	return w, nil
}

// readSole reads a file that only root can change; nil if there is none.
func readSole(root *walk.Root, name string) ([]byte, error) {
	dir, err := root.OpenDir(filepath.Dir(name))
	if err != nil {
		return nil, dropAbsent(err)
	}
	defer dir.Close()
	base := filepath.Base(name)
	if err := dir.CheckRootOnly(base); err != nil {
		return nil, dropAbsent(err)
	}
	f, err := walk.Regular(dir.Open(base))
	if err != nil {
		return nil, dropAbsent(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mostWho))
}

// dropAbsent drops the error of a file that does not exist.
func dropAbsent(err error) error {
	if walk.Nowhere(err) {
		return nil
	}
	return err
}
