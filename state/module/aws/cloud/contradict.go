package cloud

import (
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// scopes are the arguments that tell resources of one name apart.
func scopes() []string {
	return []string{"name", "region", "profile", "keyid", "vpc_id", "vpc_name", "zone", "record_type", "identifier",
		"instance_id", "instance_name", "volume_id", "volume_name", "subnet_id", "subnet_name", "route_table_id",
		"dhcp_options_id", "conn_id", "conn_name", "user_name", "path"}
}

// resource returns what a state declares: its kind, such as "boto_vpc subnet", with the arguments that tell it from
// others, and whether the state deletes it. found is false for states that declare a part of a resource, of which
// several may declare different ones.
func (c *Common) resource() (key string, absent, found bool) {
	function := Text(c.All, "fun")
	noun, isPresent := strings.CutSuffix(function, "present")
	if !isPresent {
		if noun, absent = strings.CutSuffix(function, "absent"); !absent {
			return "", false, false
		}
	}
	if slices.Contains([]string{"keys_", "private_ips_"}, noun) {
		return "", false, false
	}
	key = Text(c.All, "state") + " " + noun
	for _, name := range scopes() {
		key += "\x00" + Text(c.All, name)
	}
	return key, absent, true
}

// contradicts returns an error if another state of the run declares the same resource otherwise, since each of them
// would undo the other in each run. A state counts once it is compared with AWS, so that one that a guard leaves out
// contradicts nothing.
func (c *Common) contradicts() error {
	key, absent, found := c.resource()
	if !found {
		return nil
	}
	c.Cloud.mu.Lock()
	defer c.Cloud.mu.Unlock()
	if c.Cloud.declared == nil {
		c.Cloud.declared = map[string]*Common{}
	}
	other := c.Cloud.declared[key]
	if other == nil || other.key("") == c.key("") {
		c.Cloud.declared[key] = c
		return nil
	}
	_, otherAbsent, _ := other.resource()
	what := ""
	switch {
	case absent != otherAbsent:
		what = "one makes the resource, and the other deletes it"
	case !absent:
		what = difference(c.All, other.All)
	}
	if what == "" {
		return nil
	}
	return diag.Contradiction.Hint(fmt.Errorf("it contradicts %s (%s.%s), which declares %s too: %s",
		Text(other.All, "__id__"), Text(other.All, "state"), Text(other.All, "fun"), Text(c.All, "name"), what),
		"remove one of the two states, or declare all of the resource in one")
}

// difference names the arguments that two states give different values. Only arguments that both give are compared.
func difference(all, other *value.Map) string {
	var names []string
	for _, name := range all.Names() {
		theirs, given := other.Get(name)
		if given && !ofEachState(name) && !value.Equal(all.Value(name), theirs) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "they give other values for " + strings.Join(names, ", ")
}

// ofEachState reports whether states of any function have an argument, so that it does not describe a resource.
func ofEachState(name string) bool {
	for _, ending := range []string{"_in", "_any", "_all", "_stop"} {
		name = strings.TrimSuffix(name, ending)
	}
	return strings.HasPrefix(name, "__") || slices.Contains([]string{"state", "fun", "order", "unless", "onlyif",
		"check_cmd", "retry", "parallel", "failhard", "may_fail", "fire_event", "aggregate", "key", "saltenv", "require",
		"watch", "onchanges", "onfail", "prereq", "listen", "use"}, name)
}
