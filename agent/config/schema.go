// Package config reads the settings of an operator for a host: agent.yaml, CORPUS_* in the environment, and flags, each
// of which overrides the one before.
//
// One table lists every key with its kind, its default and its meaning. Parsing, checks and documentation use it, so a
// key that is not in the table is a mistake. All mistakes of a file are reported together, each with its position and a
// suggestion.
package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Kind is the kind of a key's value.
type Kind string

// The kinds of values.
const (
	Text     Kind = "string"
	Number   Kind = "number"
	Switch   Kind = "true or false"
	Duration Kind = "duration such as 90s or 10m"
	Texts    Kind = "list of strings"
	Probes   Kind = "list of probes"
	Pillars  Kind = "list of sources"
)

// Key is one setting.
type Key struct {
	Name    string // dotted path in the file; CORPUS_ and upper case with _ in the environment
	Kind    Kind
	Default any
	Doc     string
}

// Env returns the key's environment variable.
func (k Key) Env() string {
	return "CORPUS_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Keys returns all settings in the order in which they are documented.
func Keys() []Key { return slices.Clone(table()) }

// table returns all settings. It builds the list once, since each value of each source is looked up in it.
var table = sync.OnceValue(func() []Key {
	return slices.Concat(identityKeys(), convergeKeys(), fetchKeys(), healthKeys(), notifyKeys(), keepingKeys())
})

// identityKeys returns the settings of the store and of the identity of the host.
func identityKeys() []Key {
	return []Key{
		{"store", Text, "",
			"where artifacts are stored: s3://bucket/prefix, minio://host:port/bucket, https://host/path or file:///dir"},
		{"mirrors", Texts, []string{}, "stores with the same objects, which are used if the store fails"},
		{"service", Text, "", "the service of this host, if the hostname does not contain it; not base"},
		{"instance", Text, "", "the environment of this host, if the hostname does not contain it"},
		{"region", Text, "", "the region, if the hostname does not contain it"},
		{"node", Text, "", "the node, if the hostname does not contain it"},
		{"hostname.convention", Text, "{service}-{instance}-{region}-{node}",
			"how hostnames are built: a template, or a regexp with named groups"},
		{"metadata.enabled", Switch, true,
			"query EC2 instance metadata for the identity of the host if no other source has it"},
		{"metadata.v1", Switch, false, "allow version 1 of the metadata service, which needs no token"},
		{"channels.base", Text, "production", "channel of base"},
		{"channels.service", Text, "", "channel of the service; default: the instance"},
	}
}

// convergeKeys returns the settings of the converge.
func convergeKeys() []Key {
	return []Key{
		{"engine", Text, "native", "what converges: native, salt-call, ansible or command"},
		{"engine_command", Texts, []string{},
			"program and arguments of the engine `command`, or the path of salt-call or ansible-playbook"},
		{"top", Text, "first",
			"top files of states and of pillar that apply: first (that of the service; that of base only if the service has " +
				"none, as in Salt) or merge (that of base and then that of the service)"},
		{keyExtPillar, Pillars, nil, "sources of pillar data besides the pillar's files, as a Salt minion has them; see " +
			"python.md"},
		{"ext_pillar_first", Switch, false, "the pillar's files can use the data of the sources and override it; otherwise " +
			"the sources override the files"},
		{"event_command", Texts, []string{},
			"program and arguments that read the events of event.send, a line of JSON each; see notify.md"},
		{"converge.failhard", Switch, true, "stop at the first state that fails"},
		{"converge.strict_arguments", Switch, false, "an argument that a state function does not know is an error"},
		{"converge.state_output", Text, "mixed", "how states are shown: full, terse, mixed or changes"},
		{"converge.state_verbose", Switch, false, "show states that changed nothing too"},
		{"converge.timeout", Duration, 2 * time.Hour, "longest converge; the state that is under way at its end is stopped"},
		{"converge.stop_timeout", Duration, 90 * time.Second,
			"how long a state under way may continue after a signal to the run; 0 for no limit; a package manager may " +
				"continue for 10 minutes"},
	}
}

// fetchKeys returns the settings of hooks, of fetching and of unpacking.
func fetchKeys() []Key {
	return []Key{
		{"hooks.timeout", Duration, 10 * time.Minute, "longest run of one hook"},
		{"fetch.timeout", Duration, 30 * time.Minute,
			"longest fetch of both artifacts, and of each file that a state takes from a server"},
		{"fetch.retry", Duration, time.Duration(0),
			"how long requests are retried if a store, or the server of a state's source, does not answer; 0 for 1m, or for " +
				"15s and three tries with mirrors"},
		{"fetch.rate", Number, 0, "bytes per second to fetch at most; 0 for no limit"},
		{"fetch.slowest", Number, 1024,
			"lowest rate, in bytes per second over a minute, at which a state fetches a file from a server; 0 for no limit"},
		{"fetch.private_redirects", Switch, false,
			"whether a server on a public address may redirect sources of states to a private one"},
		{"fetch.host_rate", Number, 0,
			"bytes per second to fetch at most from one host of the store and its mirrors; 0 for no limit"},
		{"unpack.max_bytes", Number, 0, "largest content of a release; 0 for 64 GiB"},
		{"unpack.max_files", Number, 0, "most entries of a release; 0 for 2 million"},
		{"unpack.max_depth", Number, 0, "largest depth of directories in a release; 0 for 64"},
		{"unpack.max_ratio", Number, 0,
			"largest ratio of unpacked to packed bytes of an artifact, beyond 64 MiB; 0 for 1,000"},
	}
}

// healthKeys returns the settings of probes.
func healthKeys() []Key {
	return []Key{
		{"health.grace", Duration, time.Duration(0),
			"wait before the first probe of a release; corpus.yaml of the release overrides this and the next four settings"},
		{"health.deadline", Duration, 2 * time.Minute, "longest time until a release is healthy, including health.grace"},
		{"health.interval", Duration, 2 * time.Second, "wait between two tries of a probe"},
		{"health.timeout", Duration, 10 * time.Second, "longest try of a probe"},
		{"health.retries", Number, 0, "tries of a probe after the first; 0 for as many as fit into the deadline"},
		{"health.probes", Probes, nil, "probes of every release on this host, beside the release's own; see deploy.md"},
	}
}

// notifyKeys returns the settings of notifications, metrics and reports.
func notifyKeys() []Key {
	return []Key{
		{"notify.on", Texts, []string{"success", "failure", "rollback", "expiry", "guest"},
			"outcomes of which notifications are sent: success (something was deployed or changed), failure, " +
				"rollback, expiry (signatures of the store expire soon), guest (a guest of this node is ready), no-change"},
		{"notify.journal", Switch, true, "write one entry with structured fields into the journal"},
		{"notify.webhook.url", Text, "", "URL that gets a JSON document by POST"},
		{"notify.webhook.secret_file", Text, "", "file with the secret that signs the document (HMAC-SHA256)"},
		{"notify.webhook.timeout", Duration, 10 * time.Second, "longest delivery of a document"},
		{"notify.webhook.tries", Number, 4, "tries of a delivery, with growing pauses between them"},
		{"notify.mail.to", Texts, []string{}, "addresses that get a mail"},
		{"notify.mail.from", Text, "", "sender of the mail; default: that of the sendmail program"},
		{"notify.mail.sendmail", Text, "/usr/sbin/sendmail", "program that sends the mail"},
		{"notify.command", Texts, []string{}, "program and arguments that read the JSON document"},
		{"metrics.textfile", Text, "", "file for the textfile collector of Prometheus's node exporter, ending in .prom"},
		{"reports.upload", Switch, false, "put the reports of runs that have something new to report into the store, below " +
			"reports/"},
		{"reports.heartbeat", Duration, 30 * time.Minute,
			"how often a host that uploads reports renews its record in the store while nothing changes"},
	}
}

// keepingKeys returns the settings of environments, load balancers, undo, and of how much the host keeps.
func keepingKeys() []Key {
	return []Key{
		{"environments.dev", Texts, []string{"dev", "development", "local"}, "instances that are dev environments"},
		{"environments.prod", Texts, []string{"prod", "production"},
			"instances that are prod environments; all others are staging"},
		{"allow_unsigned", Texts, []string{},
			"projects that may be pushed or editable without a signature, also in prod"},
		{"elb.names", Texts, []string{},
			"classic load balancers of this host; default: the one with the name of its cluster"},
		{"elb.target_groups", Texts, []string{}, "target groups of this host, by ARN"},
		{"elb.deploy", Switch, false,
			"the host leaves its load balancers before a deploy changes it, and enters them again once it is healthy; see " +
				"firstboot.md"},
		{"elb.timeout", Duration, 6 * time.Minute,
			"longest wait of a deploy until load balancers have drained, and until they report the host as healthy"},
		{"undo.limit", Number, 1 << 30,
			"bytes on disk that the journal for undo may take; 0 for no journal; see undo.md"},
		{"undo.file_limit", Number, 16 << 20, "bytes of the largest file whose content is kept for undo"},
		{"archive.required", Switch, false,
			"a tree that does not fit beside its archives stops a deploy; otherwise the deploy continues without an archive " +
				"and notes it"},
		{"keep.archives", Number, 3, "number of archives kept of a project's tree; 0 for all"},
		{"keep.releases", Number, 5, "number of good releases kept of each project, including those in use, " +
			"which are never removed; of base also those that kept releases of the service were good with"},
		{"keep.failed", Number, 3, "number of failed releases kept of each project; 0 for none"},
		{"keep.reports", Number, 100, "number of reports kept; the last one is never removed"},
	}
}

// find returns the key of a name.
func find(name string) (Key, bool) {
	keys := table()
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// section reports whether name is the prefix of keys.
func section(name string) bool {
	return slices.ContainsFunc(table(), func(k Key) bool { return strings.HasPrefix(k.Name, name+".") })
}

// check returns the reason why a text is not a value of the key, or "".
func (k Key) check(text string) string {
	var err error
	switch k.Kind {
	case Number:
		_, err = k.Span().Number(text)
	case Switch:
		if _, wrong := strconv.ParseBool(text); wrong != nil {
			err = fmt.Errorf("%s was expected", k.Kind)
		}
	case Duration:
		_, err = k.Span().Duration(text)
	}
	if err != nil {
		return fmt.Sprintf("%s is %q, and %v", k.Name, text, err)
	}
	if problem := k.checkName(text); problem != "" {
		return problem
	}
	return k.checkChoice(text)
}

// checkName returns the reason why a text, or an item of a list, is not a name; "" for a key that takes no names.
func (k Key) checkName(text string) string {
	check := k.names()
	if check == nil || text == "" && k.Kind == Text {
		return ""
	}
	if err := check(text); err != nil {
		return fmt.Sprintf("%s: %v: %s", k.Name, err, diag.HintOf(err))
	}
	return ""
}

// names returns the check of a key that takes names; nil for any other key.
func (k Key) names() func(string) error {
	switch k.Name {
	case "service":
		return artifact.CheckService
	case "allow_unsigned":
		return artifact.CheckProject
	case "instance", "environments.dev", "environments.prod":
		return artifact.CheckPart("instance")
	case "region", "node":
		return artifact.CheckPart(k.Name)
	case "channels.base", "channels.service":
		return artifact.CheckChannel
	}
	return nil
}

// choices returns the valid values of a key that allows only some; nil for any other key.
func (k Key) choices() []string {
	switch k.Name {
	case "engine":
		return []string{"native", "salt-call", "ansible", "command"}
	case "top":
		return []string{"first", "merge"}
	case "notify.on":
		return []string{"success", "failure", "rollback", "expiry", "guest", "no-change"}
	case "converge.state_output":
		return []string{"full", "terse", "mixed", "changes"}
	}
	return nil
}

func (k Key) checkChoice(text string) string {
	if c := k.choices(); c != nil && !slices.Contains(c, text) {
		return fmt.Sprintf("%s is %q, and one of %s was expected", k.Name, text, strings.Join(c, ", "))
	}
	return ""
}
