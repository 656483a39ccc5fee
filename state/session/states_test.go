package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/session"
)

// applications lists the state functions for applications that public formulas use.
const applications = `archive.extracted module.run module.wait ini.options_present ini.options_absent ini.sections_present
ini.sections_absent git.latest git.cloned git.detached git.present git.config_set git.config_unset pip.installed pip.removed pip.uptodate
virtualenv.managed npm.installed npm.removed npm.bootstrap gem.installed gem.removed pecl.installed pecl.removed apache_module.enabled
apache_module.disabled apache_site.enabled apache_conf.enabled supervisord.running supervisord.dead mongodb_user.present
mongodb_user.absent docker_container.running docker_container.stopped docker_container.absent docker_image.present docker_image.absent
docker_network.present docker_network.absent docker_volume.present docker_volume.absent mysql_database.present mysql_database.absent
mysql_user.present mysql_user.absent mysql_grants.present mysql_grants.absent mysql_query.run mysql_query.run_file postgres_database.present
postgres_database.absent postgres_user.present postgres_user.absent postgres_group.present postgres_extension.present
postgres_extension.absent postgres_schema.present postgres_schema.absent postgres_privileges.present postgres_privileges.absent
postgres_tablespace.present postgres_language.present ldap.managed`

// TestApplications checks that a session has all functions of applications.
func TestApplications(t *testing.T) {
	have := families.New(session.Settings{Host: &host.Host{}}).Modules().Functions()
	for _, name := range strings.Fields(applications) {
		if !slices.Contains(have, name) {
			t.Errorf("there is no state function %s", name)
		}
	}
}
