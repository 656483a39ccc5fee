package packaging

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
)

// describe adds the file with the requirements of its programs to the entries of a tree that no builder made; hosts
// read it. It adds nothing to a tree without programs, so that the bytes of its artifact stay the same, to one with a
// directory of that name, and to one with programs for several architectures.
//
// Only executable files are examined, since others may be data for machines of another architecture.
func describe(tree string, entries []found, s *Summary) ([]found, error) {
	dir := path.Dir(needs.File)
	var programs []string
	for _, e := range entries {
		if e.name == dir {
			return entries, nil
		}
		if e.info.Mode().IsRegular() && e.info.Mode()&0o111 != 0 {
			programs = append(programs, e.name)
		}
	}
	n, err := needs.OfFiles(os.DirFS(tree), programs)
	if mixed, is := errors.AsType[*needs.Mixed](err); is {
		s.Mixed = mixed.Error()
		return entries, nil
	}
	if err != nil {
		return nil, err
	}
	if slices.Contains([]string{"386", "arm"}, n.Arch) {
		n.Arch = "" // most 64-bit hosts run such programs as well
	}
	if n.Arch == "" && n.Glibc == "" && len(n.Programs) == 0 {
		return entries, nil
	}
	data, err := json.MarshalIndent(struct {
		Needs needs.Needs `json:"needs"`
	}{n}, "", "  ")
	if err != nil {
		return nil, err
	}
	file := found{name: needs.File, data: append(data, '\n')}
	file.info = made{size: int64(len(file.data))}
	s.Files, s.Bytes = s.Files+2, s.Bytes+file.info.Size()
	at := slices.IndexFunc(entries, func(e found) bool {
		top, _, _ := strings.Cut(e.name, "/")
		return top > dir
	})
	if at < 0 {
		at = len(entries)
	}
	return slices.Insert(entries, at, found{name: dir, info: made{mode: fs.ModeDir}}, file), nil
}

// made is what packing reads of the information about an entry that is not in the tree.
type made struct {
	fs.FileInfo

	size int64
	mode fs.FileMode
}

func (m made) Size() int64       { return m.size }
func (m made) Mode() fs.FileMode { return m.mode }
func (m made) IsDir() bool       { return m.mode.IsDir() }
