package file

import (
	"context"
	"errors"
	"path"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stateFunctions returns the functions that are implemented by states of file.
func stateFunctions(o file) function.Table {
	path := map[string]string{"path": "name"}
	t := function.StateFunctions(o.Facts, map[string]function.ByState{
		"file.remove": {Signature: "path", State: "file.absent", Rename: path, True: true},
		"file.touch":  {Signature: "name, atime=None, mtime=None", State: "file.touch", True: true},
		"file.symlink": {Signature: "src, path, force=False", State: "file.symlink",
			Rename: map[string]string{"src": "target", "path": "name"}, True: true},
		"file.mkdir": {Signature: "dir_path, user=None, group=None, mode=None", State: "file.directory",
			Rename: map[string]string{"dir_path": "name"}, True: true},
		"file.makedirs": {Signature: "path, user=None, group=None, mode=None", State: "file.directory", Rename: path,
			Fixed: map[string]any{"makedirs": true}},
		"file.rename": {Signature: "src, dst", State: "file.rename",
			Rename: map[string]string{"src": "source", "dst": "name"},
			Fixed:  map[string]any{"force": true}, True: true},
		"file.comment":   {Signature: "path, regex, char='#'", State: "file.comment", Rename: path},
		"file.uncomment": {Signature: "path, regex, char='#'", State: "file.uncomment", Rename: path},
		"file.replace":   {Signature: "path, pattern, repl", State: "file.replace", Rename: path},
	})
	copied := function.ByState{Signature: "src, dst, recurse=False, remove_existing=False", State: "file.copy",
		Rename: map[string]string{"src": "source", "dst": "name"},
		Fixed:  map[string]any{"force": true}, Without: []string{"recurse", "remove_existing"}, True: true}
	t["file.copy"] = function.Of(copied.Signature, o.copy(copied))
	return t
}

// copy copies a file, or with recurse=True a directory.
func (o file) copy(d function.ByState) any {
	do := d.Function(o.Facts)
	return func(ctx context.Context, a function.Arguments) (any, error) {
		from, to := value.Str(a.Value("src")), value.Str(a.Value("dst"))
		if !path.IsAbs(from) || !path.IsAbs(to) {
			return nil, errors.New("file.copy takes absolute paths")
		}
		info, err := o.Host.Files.Stat(from)
		if err != nil {
			return nil, err
		}
		if info.IsDir() && !value.Truth(a.Value("recurse")) {
			return nil, host.Unlike(from, info, host.AFile, "set recurse=True to copy it")
		}
		if value.Truth(a.Value("remove_existing")) && info.IsDir() {
			if _, err := o.RunState(ctx, "file.absent", value.NewMap("name", to)); err != nil {
				return nil, err
			}
		}
		return do(ctx, a)
	}
}
