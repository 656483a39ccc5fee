//go:build integration

package aws_test

import (
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// emulator returns the URL of moto's server: MOTO_ENDPOINT, or that of a server that the test starts from PATH.
func emulator(t *testing.T) string {
	t.Helper()
	url := os.Getenv("MOTO_ENDPOINT")
	if url == "" {
		program, err := exec.LookPath("moto_server")
		if err != nil {
			t.Skip("this takes moto_server on PATH, or a server in MOTO_ENDPOINT")
		}
		url = "http://127.0.0.1:5599"
		server := exec.Command(program, "-p", "5599")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Post(url+"/moto-api/reset", "", nil)
		if err == nil {
			_ = resp.Body.Close()
			return url
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// state runs one state function against an emulator and returns its changes. A dry run only checks.
func state(t *testing.T, url, function, arguments string, dry bool) *value.Map {
	t.Helper()
	return runState(t, &aws.Cloud{Endpoint: url}, function, arguments, dry)
}

// TestEveryDriftIsFoundAndCorrected tests the drifts of each resource against an emulator.
func TestEveryDriftIsFoundAndCorrected(t *testing.T) {
	url := emulator(t)
	state(t, url, "boto_route53.hosted_zone_present", "{name: example.com, domain_name: example.com.}", false)
	state(t, url, "boto_secgroup.present", "{name: other, description: other}", false)
	state(t, url, "boto_elb.present", "{name: spare, availability_zones: [us-east-1a], listeners: [{elb_port: 80, "+
		"elb_protocol: HTTP}]}", false)
	state(t, url, "boto_iam.policy_present", "{name: own, policy_document: {Version: '2012-10-17', Statement: [{Action: "+
		"'s3:*', Effect: Allow, Resource: '*'}]}}", false)
	state(t, url, "boto_s3_bucket.present", "{name: logs, Bucket: logs, ACL: {ACL: log-delivery-write}}", false)
	for _, r := range resources() {
		t.Run(r.function, func(t *testing.T) { r.try(t, func() *aws.Cloud { return &aws.Cloud{Endpoint: url} }) })
	}
}
