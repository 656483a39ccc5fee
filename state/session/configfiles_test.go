package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestConfigurationFilesOfUsersAreRefused checks the arguments that pass a file to a program of root. A file of another
// user is refused.
func TestConfigurationFilesOfUsersAreRefused(t *testing.T) {
	c := newClones(t)
	for _, name := range []string{"supervisorctl", "mysql", "pip3", "virtualenv", "gem", "npm", "pecl"} {
		text := "#!/bin/sh\ncase \"$*\" in *list*) echo '[]';; *--version*|*import*) echo 'Python 3.0';; *) id -u >>" +
			c.ran +
			"; mkdir -p " + c.dir + "/new/bin;; esac\n"
		hosttest.Put(t, filepath.Join(c.dir, "bin", name), text, 0o755)
		c.must(os.Chmod(filepath.Join(c.dir, "bin", name), 0o755))
	}
	t.Setenv("PATH", filepath.Join(c.dir, "bin")+":/usr/bin:/bin")
	file := filepath.Join(c.dir, "file")
	for _, sls := range []string{
		"supervisord.running: [{name: x}, {bin_env: DIR/bin/supervisorctl}, {conf_file: FILE}]",
		"supervisord.dead: [{name: x}, {bin_env: DIR/bin/supervisorctl}, {conf_file: FILE}]",
		"mysql_database.present: [{name: x}, {connection_default_file: FILE}]",
		"mysql_user.present: [{name: x}, {connection_default_file: FILE}, {allow_passwordless: true}]",
		"mysql_query.run: [{database: x}, {query: SELECT 1}, {connection_default_file: FILE}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {find_links: FILE}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {find_links: 'file://FILE'}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {cache_dir: FILE}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {cert: FILE}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {log: FILE}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {extra_index_url: ['file://FILE']}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {extra_args: ['--find-links=FILE']}]",
		"pip.installed: [{name: x}, {bin_env: DIR/bin/pip3}, {extra_args: [--constraint, FILE]}]",
		"pip.installed: [{name: x @ file://FILE}, {bin_env: DIR/bin/pip3}]",
		"pip.installed: [{name: FILE}, {bin_env: DIR/bin/pip3}]",
		"virtualenv.managed: [{name: DIR/new}, {python: FILE}]",
		"gem.installed: [{name: FILE}]",
		"gem.installed: [{name: x}, {source: 'file://FILE'}]",
		"npm.installed: [{name: FILE}]",
		"pecl.installed: [{name: FILE}]",
		"test.nop: [{name: '{{ salt[\"mysql.db_list\"](connection_default_file=\"FILE\") }}'}]",
	} {
		sls = strings.NewReplacer("FILE", file, "DIR", c.dir).Replace("t: {" + sls + "}")
		for _, owner := range []int{0, nobody} {
			_ = os.Remove(c.ran)
			hosttest.Put(t, file, "#!/bin/sh\necho 'Python 3.0'\n", 0o755)
			c.must(os.Chown(file, owner, owner))
			r := c.apply(sls)
			refused := r.Outcome == exec.Failed && strings.Contains(r.Comment, file+" is controlled by user ") &&
				strings.Contains(r.Comment, "could have a program that root runs there run another")
			_, err := os.Stat(c.ran)
			if refused != (owner != 0) || refused && err == nil {
				t.Errorf("%s, owner %d: %v, the program ran: %v: %s", sls, owner, r.Outcome, err == nil, r.Comment)
			}
		}
	}
}
