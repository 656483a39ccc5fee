package procedure

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// skeleton returns the files of the default procedures, for a project to change.
func skeleton(project string) map[string]string {
	return map[string]string{
		"PILLAR.sample": `# The project's configuration with its defaults. What a host's own pillar says wins.
makina-projects.` + project + `:
  data: {}
  env_defaults:
    dev: {}
  os_defaults: {}
`,
		Archive + ".sls":  "# Runs before the project's tree is archived; cfg.current_archive_dir is where that is.\n",
		Rollback + ".sls": "# Runs after a deploy that failed, when the links lead to the last good release again.\n",
		Notify + ".sls":   "# Runs at the end of every deploy, whatever became of it.\n",
		Fixperms + ".sls": `# Runs before and after install, in place of what is built in.
` + project + ` data:
  file.directory:
    - name: {{ cfg.data_root }}
    - user: {{ cfg.user }}
    - group: {{ cfg.group }}
    - recurse: [user, group]
`,
	}
}

// WriteSkeleton writes the default procedures that a tree lacks, and returns their names. It keeps existing files. The
// new files belong to the tree's owner. That user may change the tree, so WriteSkeleton uses descriptors, and refuses a
// link in the place of .salt.
func WriteSkeleton(root *walk.Root, tree, project string) ([]string, error) {
	written, err := writeSkeleton(root, tree, project)
	if err != nil {
		err = fmt.Errorf("writing default procedures: %w", err)
	}
	return written, err
}

func writeSkeleton(root *walk.Root, tree, project string) ([]string, error) {
	top, err := root.OpenDir(tree)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	st, err := top.Lstat(".")
	if err != nil {
		return nil, err
	}
	uid, gid := int(st.Uid), int(st.Gid)
	dir, err := top.OpenDir(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		dir, err = top.Mkdir(Dir, walk.New{Mode: 0o755, UID: uid, GID: gid})
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var written []string
	for name, text := range skeleton(project) {
		stem := strings.TrimSuffix(name, filepath.Ext(name))
		if there(dir, name) || name != "PILLAR.sample" && there(dir, stem) {
			continue
		}
		err := dir.Create(name, walk.New{Mode: 0o644, UID: uid, GID: gid}, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return written, err
		}
		written = append(written, name)
	}
	return written, nil
}

func there(dir *walk.Dir, name string) bool {
	_, err := dir.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
