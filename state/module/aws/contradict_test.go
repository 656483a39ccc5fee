package aws_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// declared runs a state of a run: cloud is the one of the run, and id the ID of the state.
func declared(t *testing.T, cloud *aws.Cloud, id, function, arguments string) error {
	t.Helper()
	state, fun, _ := strings.Cut(function, ".")
	_, err := tryState(t, cloud, function, "{state: "+state+", fun: "+fun+", __id__: "+id+", "+arguments+"}", false)
	return err
}

// TestStatesThatContradictEachOther has two states of a run declare one resource. Each would undo the other in each
// run.
func TestStatesThatContradictEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newImitation(t, newQueues(0), newNetworks(0), newSecurityGroups(0), oneAccount{})
		const queue = "name: q, attributes: {VisibilityTimeout: 10}"
		for what, c := range map[string]struct{ first, second, says string }{
			"other values": {"boto_sqs.present " + queue, "boto_sqs.present name: q, attributes: {VisibilityTimeout: 20}",
				"attributes"},
			"made and deleted":   {"boto_sqs.present " + queue, "boto_sqs.absent name: q", "deletes it"},
			"deleted and made":   {"boto_vpc.absent name: v", "boto_vpc.present name: v, cidr_block: 10.0.0.0/16", "deletes it"},
			"the same twice":     {"boto_sqs.present " + queue, "boto_sqs.present " + queue + ", require: [{boto_sqs: a}]", ""},
			"another region":     {"boto_sqs.present " + queue, "boto_sqs.absent name: q, region: eu-west-1", ""},
			"another name":       {"boto_sqs.present " + queue, "boto_sqs.absent name: r", ""},
			"another kind":       {"boto_vpc.absent name: v", "boto_vpc.subnet_absent name: v", ""},
			"what the other has": {"boto_sqs.present name: q", "boto_sqs.present " + queue, ""},
		} {
			cloud := i.cloud()
			function, arguments, _ := strings.Cut(c.first, " ")
			if err := declared(t, cloud, "a", function, arguments); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			function, arguments, _ = strings.Cut(c.second, " ")
			err := declared(t, cloud, "b", function, arguments)
			switch {
			case c.says == "" && err != nil:
				t.Errorf("%s: %v", what, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "contradicts a (")):
				t.Errorf("%s: the error is %v", what, err)
			}
			if err := declared(t, cloud, "b", function, arguments); (err != nil) != (c.says != "") {
				t.Errorf("%s, again: %v", what, err)
			}
		}
	})
}
