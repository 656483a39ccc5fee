package function

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// fileStates are the functions that states of file stand in for.
func fileStates(o file) Table {
	path := map[string]string{"path": "name"}
	t := byState(o.Facts, map[string]deed{
		"file.remove":  {signature: "path", state: "file.absent", rename: path, yes: true},
		"file.touch":   {signature: "name, atime=None, mtime=None", state: "file.touch", yes: true},
		"file.symlink": {signature: "src, path, force=False", state: "file.symlink", rename: map[string]string{"src": "target", "path": "name"}, yes: true},
		"file.mkdir":   {signature: "dir_path, user=None, group=None, mode=None", state: "file.directory", rename: map[string]string{"dir_path": "name"}, yes: true},
		"file.makedirs": {signature: "path, user=None, group=None, mode=None", state: "file.directory", rename: path,
			fixed: map[string]any{"makedirs": true}},
		"file.rename": {signature: "src, dst", state: "file.rename", rename: map[string]string{"src": "source", "dst": "name"},
			fixed: map[string]any{"force": true}, yes: true},
		"file.comment":   {signature: "path, regex, char='#'", state: "file.comment", rename: path},
		"file.uncomment": {signature: "path, regex, char='#'", state: "file.uncomment", rename: path},
		"file.replace":   {signature: "path, pattern, repl", state: "file.replace", rename: path},
	})
	copied := deed{signature: "src, dst, recurse=False, remove_existing=False", state: "file.copy", rename: map[string]string{"src": "source", "dst": "name"},
		fixed: map[string]any{"force": true}, without: []string{"recurse", "remove_existing"}, yes: true}
	t["file.copy"] = Of(copied.signature, o.copy(copied))
	return t
}

// copy copies a file, or with recurse a directory.
func (o file) copy(d deed) any {
	do := d.with(o.Facts)
	return func(ctx context.Context, a Arguments) (any, error) {
		from, to := value.Str(a.Value("src")), value.Str(a.Value("dst"))
		if !path.IsAbs(from) || !path.IsAbs(to) {
			return nil, errors.New("file.copy takes absolute paths")
		}
		info, err := o.Host.Files.Stat(from)
		if err != nil {
			return nil, err
		}
		if info.IsDir() && !value.Truth(a.Value("recurse")) {
			return nil, diag.WithHint(fmt.Errorf("%s is a directory", from), "set recurse=True to copy it")
		}
		if value.Truth(a.Value("remove_existing")) && info.IsDir() {
			if _, err := o.act(ctx, "file.absent", value.NewMap("name", to)); err != nil {
				return nil, err
			}
		}
		return do(ctx, a)
	}
}
