package aws_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
	"github.com/corpus-agent/corpus-agent/state/value"
	"github.com/corpus-agent/corpus-agent/state/yaml"
)

// secretKeys makes keys whose secret half it shows once.
type secretKeys struct {
	made, deleted int
	kept          []string // the IDs of keys that are there
}

func (s *secretKeys) answer(in any) (any, error) {
	switch in.(type) {
	case *iam.ListAccessKeysInput:
		out := &iam.ListAccessKeysOutput{}
		for _, id := range s.kept {
			out.AccessKeyMetadata = append(out.AccessKeyMetadata, types.AccessKeyMetadata{AccessKeyId: &id})
		}
		return out, nil
	case *iam.CreateAccessKeyInput:
		s.made++
		return &iam.CreateAccessKeyOutput{AccessKey: &types.AccessKey{AccessKeyId: sdk.String("A"),
			SecretAccessKey: sdk.String("secret")}}, nil
	case *iam.DeleteAccessKeyInput:
		s.deleted++
		return &iam.DeleteAccessKeyOutput{}, nil
	case *ec2.DescribeKeyPairsInput:
		return &ec2.DescribeKeyPairsOutput{KeyPairs: make([]ec2types.KeyPairInfo, min(len(s.kept), 1))}, nil
	case *ec2.CreateKeyPairInput:
		s.made++
		return &ec2.CreateKeyPairOutput{KeyMaterial: sdk.String("secret")}, nil
	case *ec2.DeleteKeyPairInput:
		s.deleted++
		return &ec2.DeleteKeyPairOutput{}, nil
	}
	return nil, nil
}

// TestSecretsThatCannotBeKeptAreNotMade makes keys whose secret half is to be written into a directory that does not
// exist: the plan fails. If the directory is lost between plan and run, the key is deleted again.
func TestSecretsThatCannotBeKeptAreNotMade(t *testing.T) {
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	for function, argument := range map[string]string{"boto_iam.keys_present": "number: 1, save_dir",
		"boto_ec2.key_present": "save_path"} {
		keys := &secretKeys{}
		cloud, dir := newImitation(t, keys).cloud(), filepath.Join(t.TempDir(), "gone")
		resource := decoded(t, cloud, function, "{name: bob, "+argument+": "+dir+"}")
		if _, err := resource.Check(t.Context(), h); err == nil || !strings.Contains(err.Error(), dir) || keys.made > 0 {
			t.Errorf("%s plans a key for a directory that does not exist: %v", function, err)
		}
		diff, err := resource.Check(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = resource.Apply(context.Background(), h, diff)
		if err == nil || keys.made != 1 || keys.deleted != 1 {
			t.Errorf("%s made %d keys and deleted %d that it could not write: %v", function, keys.made, keys.deleted, err)
		}
	}
}

// TestLostSecretsAreWarnings has keys whose file is missing or lacks one of them.
func TestLostSecretsAreWarnings(t *testing.T) {
	h, err := host.Open(host.Options{}, host.Caches{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ function, argument, file, lacking string }{
		{"boto_iam.keys_present", "number: 2, save_dir", "bob", "id A\n"},
		{"boto_ec2.key_present", "save_path", "bob.pem", ""}} {
		dir := t.TempDir()
		cloud := newImitation(t, &secretKeys{kept: []string{"A", "B"}}).cloud()
		warns := func(want string) {
			t.Helper()
			diff, err := decoded(t, cloud, c.function, "{name: bob, "+c.argument+": "+dir+"}").Check(t.Context(), h)
			got := strings.Join(diff.Warnings, " ")
			if err != nil || !diff.Empty() || (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("%s warns %q, want %q: %v", c.function, got, want, err)
			}
		}
		write := func(text string) {
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		warns("is missing")
		if c.lacking != "" {
			write(c.lacking)
			warns("lacks B")
		}
		write("A B")
		warns("")
	}
}

// decoded returns a resource with its arguments.
func decoded(t *testing.T, cloud *aws.Cloud, function, arguments string) module.Resource {
	t.Helper()
	doc, err := yaml.LoadString(arguments, function)
	if err != nil {
		t.Fatal(err)
	}
	name, fun, _ := strings.Cut(function, ".")
	r := aws.Tables(cloud)[name][fun]()
	if _, problems := module.Decode(r,
		module.Call{Function: function, Arguments: doc.Value.(*value.Map)}); len(problems) > 0 {
		t.Fatal(problems)
	}
	return r
}
