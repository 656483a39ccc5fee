package module_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module"
)

func TestUnknown(t *testing.T) {
	known := []string{"file.managed", "file.absent", "service.running", "git.present"}
	for function, want := range map[string][2]string{
		"file.manged":              {"no such state function", `did you mean "file.managed"?`},
		"file.somethingelse":       {"file has no somethingelse", "of file there are absent, managed"},
		"boto_secgroup.present":    {"resources of AWS belong to no host", "corpus orchestrate"},
		"boto_ec2.key_present":     {"resources of AWS belong to no host", "corpus orchestrate"},
		"boto3_route53.hosted":     {"has its zones and records as boto_route53", "boto_route53.hosted_zone_present"},
		"boto_lambda.x":            {"no host lives in this service", "AWS SAM"},
		"win_path.exists":          {"operating system", "engine: salt-call"},
		"ufw.allowed":              {"formula's own", "iptables"},
		"lxd_container.present":    {"has not been written", "cmd.run"},
		"postgres_cluster.present": {"has not been written", "cmd.run"},
		"brains.present":           {"no such state function", "docs/states.md"},
		"gti.present":              {"no such state function", `did you mean "git.present"?`},
		"lxd.init":                 {"has not been written", "lxc launch"},
		"nobody.knows_this_thing":  {"no such state function", "docs/states.md"},
	} {
		err := module.Unknown(function, known)
		if !strings.Contains(err.Error(), want[0]) || !strings.Contains(diag.HintOf(err), want[1]) {
			t.Errorf("%s gives %v (hint: %s), want %q and %q", function, err, diag.HintOf(err), want[0], want[1])
		}
	}
}
