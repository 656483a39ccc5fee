package procedure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// skeleton is the default procedures as files, for a project to change.
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

// WriteSkeleton writes the default procedures that a tree lacks, and says which. What is there is
// somebody's and stays.
func WriteSkeleton(tree, project string) ([]string, error) {
	dir := filepath.Join(tree, Dir)
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing default procedures: %w", err)
	}
	var written []string
	for name, text := range skeleton(project) {
		path := filepath.Join(dir, name)
		stem := path[:len(path)-len(filepath.Ext(path))]
		if there(path) || name != "PILLAR.sample" && there(stem) {
			continue
		}
		if err := durable.WriteFile(path, []byte(text), 0o644); err != nil {
			return written, fmt.Errorf("writing default procedures: %w", err)
		}
		written = append(written, name)
	}
	return written, nil
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
