package cmd_test

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hostPolicy matches the policy of a host in docs/buckets.md.
var hostPolicy = regexp.MustCompile("(?s)```json (host[a-z-]*)\n(.*?)```")

// TestHostPoliciesDenyOtherHosts checks that the policies of hosts only allow a host to write its own names, even
// though the wildcards of a policy match slashes, with rollout IDs in the form that corpus makes.
func TestHostPoliciesDenyOtherHosts(t *testing.T) {
	text, err := os.ReadFile("../docs/buckets.md")
	if err != nil {
		t.Fatal(err)
	}
	var writes []*regexp.Regexp
	for _, m := range hostPolicy.FindAllStringSubmatch(string(text), -1) {
		var policy struct {
			Statement []struct{ Action, Resource []string }
		}
		if err := json.Unmarshal([]byte(m[2]), &policy); err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		for _, s := range policy.Statement {
			if strings.Contains(strings.Join(s.Action, " "), "s3:Put") {
				writes = append(writes, granted(s.Resource)...)
			}
		}
	}
	const of = "rollouts/myapp/production/20261124t210000-0badcafe/"
	for key, want := range map[string]bool{
		"hosts/h4/KEY.json": true, "reports/myapp/h4/R.json": true, "fleet/myapp/h4/R.json": true,
		of + "results/h4/healthy.R.S.json": true, of + "halts/h4/1.R.S.json": true, of + "leases/c/0.json": true,
		"hosts/h1/KEY.json": false, "reports/myapp/h1/R.json": false, "fleet/myapp/h1/R.json": false,
		"reports/other/h4/R.json":          false,
		of + "results/h1/healthy.R.S.json": false, of + "halts/h1/1.R.S.json": false, of + "roster.json": false,
		of + "results/h1/leases/0.json": false, of + "results/h1/results/h4/x": false, of + "halts/h1/halts/h4/x": false,
		"rollouts/myapp/testing/20261124t210000-0badcafe/leases/c/0.json": false, "metadata/timestamp.json": false,
	} {
		if got := allowed(writes, key); got != want {
			t.Errorf("the policies allow h4 to write %s: %v, want %v", key, got, want)
		}
	}
}

// TestTheRoleOfTheOrchestrationTreeIsThatOfAHost compares the role in the example tree with the rights of a host in
// docs/buckets.md, with the names of the group's hosts in place of one.
func TestTheRoleOfTheOrchestrationTreeIsThatOfAHost(t *testing.T) {
	tree, err := os.ReadFile("../packaging/trees/orchestration/orchestration/myapp.sls")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../docs/buckets.md")
	if err != nil {
		t.Fatal(err)
	}
	of := strings.NewReplacer("arn:aws:s3:::BUCKET/PREFIX/", "", "HOST/*", "{{ cluster }}-*")
	documented := map[string]bool{}
	for _, m := range hostPolicy.FindAllStringSubmatch(string(text), -1) {
		for _, r := range regexp.MustCompile(`"arn:aws:s3:::BUCKET/[^"]+"`).FindAllString(m[2], -1) {
			r = of.Replace(strings.Trim(r, `"`))
			base := strings.NewReplacer("PROJECT/CHANNEL", "{{ channel }}", "PROJECT", "base").Replace(r)
			if strings.HasPrefix(r, "rollouts/") {
				documented[base] = true
			}
			documented[strings.NewReplacer("PROJECT/CHANNEL", "{{ channel }}", "PROJECT", "{{ service }}").Replace(r)] = true
		}
	}
	given := map[string]bool{}
	for _, m := range regexp.MustCompile(`'\{\{ store \}\}/([^']+)'`).FindAllStringSubmatch(string(tree), -1) {
		given[m[1]] = true
	}
	if !maps.Equal(given, documented) {
		t.Errorf("the tree grants %q, but docs/buckets.md lists %q", slices.Sorted(maps.Keys(given)),
			slices.Sorted(maps.Keys(documented)))
	}
	if strings.Contains(string(tree), "{{ aws.prefix }}/*") {
		t.Error("the tree grants the whole store")
	}
}

// granted returns patterns of the keys of a policy's resources, for the host h4.
func granted(resources []string) (all []*regexp.Regexp) {
	names := strings.NewReplacer("arn:aws:s3:::BUCKET/PREFIX/", "", "PROJECT", "myapp", "CHANNEL", "production", "HOST",
		"h4")
	wild := strings.NewReplacer(`\*`, ".*", `\?`, ".")
	for _, r := range resources {
		all = append(all, regexp.MustCompile("^"+wild.Replace(regexp.QuoteMeta(names.Replace(r)))+"$"))
	}
	return all
}

func allowed(all []*regexp.Regexp, key string) bool {
	for _, r := range all {
		if r.MatchString(key) {
			return true
		}
	}
	return false
}
