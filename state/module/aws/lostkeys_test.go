package aws_test

import (
	"context"
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
type secretKeys struct{ made, deleted int }

func (s *secretKeys) answer(in any) (any, error) {
	switch in.(type) {
	case *iam.ListAccessKeysInput:
		return &iam.ListAccessKeysOutput{}, nil
	case *iam.CreateAccessKeyInput:
		s.made++
		return &iam.CreateAccessKeyOutput{AccessKey: &types.AccessKey{AccessKeyId: sdk.String("A"),
			SecretAccessKey: sdk.String("secret")}}, nil
	case *iam.DeleteAccessKeyInput:
		s.deleted++
		return &iam.DeleteAccessKeyOutput{}, nil
	case *ec2.DescribeKeyPairsInput:
		return &ec2.DescribeKeyPairsOutput{KeyPairs: []ec2types.KeyPairInfo{}}, nil
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
