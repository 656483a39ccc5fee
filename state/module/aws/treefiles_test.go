package aws_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// TestFilesOfTheTreeAreArguments gives keys and certificates as salt:// URLs. A file that is missing, or has something
// else, is an error of the plan.
func TestFilesOfTheTreeAreArguments(t *testing.T) {
	files := map[string]string{"salt://k.pub": "ssh-ed25519 AAAA", "salt://c.crt": "-----BEGIN CERTIFICATE-----",
		"salt://c.key": "-----BEGIN PRIVATE KEY-----", "salt://odd": "-"}
	uploads := &uploads{}
	i := newImitation(t, uploads)
	cloud := func() *aws.Cloud {
		c := i.cloud()
		c.Source = func(_ context.Context, url, _ string) ([]byte, error) {
			if text, ok := files[url]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		return c
	}
	runState(t, cloud(), "boto_ec2.key_present", "{name: k, upload_public: 'salt://k.pub'}", false)
	runState(t, cloud(), "boto_iam.server_cert_present",
		"{name: c, public_key: 'salt://c.crt', private_key: 'salt://c.key', cert_chain: 'salt://c.crt'}", false)
	want := files["salt://k.pub"] + " " + files["salt://c.crt"] + " " + files["salt://c.key"] + " " + files["salt://c.crt"]
	if got := strings.Join(uploads.texts, " "); got != want {
		t.Errorf("AWS got %q, want %q", got, want)
	}
	for function, arguments := range map[string]string{"boto_ec2.key_present": "upload_public: 'salt://gone'",
		"boto_iam.server_cert_present":   "public_key: 'salt://c.crt', private_key: 'salt://odd'",
		"boto_iam.saml_provider_present": "saml_metadata_document: 'salt://odd'"} {
		if _, err := tryState(t, cloud(), function, "{name: x, "+arguments+"}", true); err == nil {
			t.Errorf("%s takes %s", function, arguments)
		}
	}
}

// uploads takes keys and certificates, and keeps their texts.
type uploads struct{ texts []string }

func (u *uploads) answer(in any) (any, error) {
	switch in := in.(type) {
	case *ec2.DescribeKeyPairsInput:
		return nil, fault("InvalidKeyPair.NotFound")
	case *ec2.ImportKeyPairInput:
		u.texts = append(u.texts, string(in.PublicKeyMaterial))
		return &ec2.ImportKeyPairOutput{}, nil
	case *iam.GetServerCertificateInput:
		return nil, fault("NoSuchEntity")
	case *iam.UploadServerCertificateInput:
		u.texts = append(u.texts, *in.CertificateBody, *in.PrivateKey, sdk.ToString(in.CertificateChain))
		return &iam.UploadServerCertificateOutput{}, nil
	}
	return nil, nil
}

// TestDeletionsThatThePlanDidNotShow deletes a queue that was made after the plan: the run refuses it, unless a person
// agreed to all deletions.
func TestDeletionsThatThePlanDidNotShow(t *testing.T) {
	queues := newQueues(0)
	i := newImitation(t, queues)
	planned := i.cloud()
	runState(t, planned, "boto_sqs.absent", "{name: late}", true)
	runState(t, i.cloud(), "boto_sqs.present", "{name: late}", false)
	run := i.cloud()
	run.Agreed = planned.Removals()
	if _, err := tryState(t, run, "boto_sqs.absent", "{name: late}", false); err == nil ||
		!strings.Contains(err.Error(), "the plan did not show") || len(queues.all) != 1 {
		t.Errorf("the run deletes what the plan did not show: %v, %v", err, queues.all)
	}
	shown := i.cloud()
	runState(t, shown, "boto_sqs.absent", "{name: late}", true)
	run = i.cloud()
	run.Agreed = shown.Removals()
	if runState(t, run, "boto_sqs.absent", "{name: late}", false); len(queues.all) != 0 {
		t.Errorf("a deletion that the plan showed leaves %v", queues.all)
	}
}
