package function

import (
	"github.com/corpus-agent/corpus-agent/state/value"
)

// ConnectionSetting returns a setting for the connection to a database server: from the arguments of the call, or
// else from the configuration.
func (f *Facts) ConnectionSetting(connection *value.Map, prefix string, names ...string) string {
	if v := connection.Value(names[0]); v != nil {
		return value.Str(v)
	}
	v, _ := FirstSetting(prefix+names[len(names)-1], f.SettingSources(true, true, true, true))
	return OptionalText(v)
}

// SettingSources returns the sources of settings, in order of precedence.
func (f *Facts) SettingSources(opts, grains, pillar, master bool) []*value.Map {
	var list []*value.Map
	for _, s := range []struct {
		wanted bool
		data   *value.Map
	}{{opts, f.Options}, {grains, f.Grains}, {pillar, f.CurrentPillar()}, {master, f.MasterSettings()}} {
		if s.wanted {
			list = append(list, s.data)
		}
	}
	return list
}

// MasterSettings returns the configuration of a master if the pillar contains it.
func (f *Facts) MasterSettings() *value.Map {
	m, _ := f.CurrentPillar().Value("master").(*value.Map)
	return m
}

// FirstSetting returns a setting from the first source that has it.
func FirstSetting(key string, sources []*value.Map) (any, bool) {
	for _, data := range sources {
		if v, ok := data.Get(key); ok {
			return v, true
		}
	}
	return nil, false
}

// BuiltInSettings returns the settings that have a default in Salt.
func BuiltInSettings() *value.Map {
	return value.NewMap(
		"mongo.db", "salt", "mongo.password", "", "mongo.port", 27017, "mongo.user", "",
		"redis.db", "0", "redis.host", "salt", "redis.port", 6379, "test.foo", "unconfigured", "ca.cert_base_path",
		"/etc/pki",
		"solr.cores", value.NewList(), "solr.host", "localhost", "solr.port", "8983", "solr.baseurl", "/solr", "solr.type",
		"master",
		"solr.request_timeout", nil, "solr.init_script", "/etc/rc.d/solr",
		"solr.dih.import_options", value.NewMap("clean", false, "optimize", true, "commit", true, "verbose", false),
		"solr.backup_path", nil, "solr.num_backups", 1,
		"poudriere.config", "/usr/local/etc/poudriere.conf", "poudriere.config_dir", "/usr/local/etc/poudriere.d",
		"ldap.uri", "", "ldap.server", "localhost", "ldap.port", "389", "ldap.tls", false, "ldap.no_verify", false,
		"ldap.anonymous", true, "ldap.scope", 2, "ldap.attrs", nil, "ldap.binddn", "", "ldap.bindpw", "",
		"hosts.file", "/etc/hosts", "aliases.file", "/etc/aliases",
		"virt", value.NewMap("tunnel", false, "images", "/srv/salt-images"), "docker.exec_driver", "docker-exec",
		"docker.compare_container_networks", value.NewMap("static", value.Strings("Aliases", "Links", "IPAMConfig"),
			"automatic", value.Strings("IPAddress", "Gateway", "GlobalIPv6Address", "IPv6Gateway")))
}
