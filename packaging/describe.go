package packaging

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/packaging/seen"
)

// describe adds the file with the requirements of its programs to the entries of a tree that no builder made; hosts
// read it. It adds nothing to a tree without programs, so that the bytes of its artifact stay the same, to one with a
// directory of that name, and to one with programs for several architectures.
//
// Only executable files are examined, since others may be data for machines of another architecture.
func describe(tree *seen.Tree, entries []found, s *Summary) ([]found, error) {
	dir := path.Dir(needs.File)
	var programs []seen.Entry
	var names []string
	for _, e := range entries {
		if e.Name == dir {
			return entries, nil
		}
		if e.Mode.IsRegular() && e.Mode&0o111 != 0 {
			programs, names = append(programs, e.Entry), append(names, e.Name)
		}
	}
	n, err := needs.OfFiles(tree.Files(programs), names)
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
	file := found{data: append(data, '\n')}
	file.Entry = seen.Entry{Name: needs.File, Size: int64(len(file.data))}
	s.Files, s.Bytes = s.Files+2, s.Bytes+file.Size
	at := slices.IndexFunc(entries, func(e found) bool {
		top, _, _ := strings.Cut(e.Name, "/")
		return top > dir
	})
	if at < 0 {
		at = len(entries)
	}
	return slices.Insert(entries, at, found{Entry: seen.Entry{Name: dir, Mode: fs.ModeDir}}, file), nil
}
