package aws_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws"
)

// withHint returns the text of an error with its hint.
func withHint(err error) string {
	if err == nil {
		return ""
	}
	return err.Error() + " " + diag.HintOf(err)
}

// repeating refuses requests with messages that repeat what they have.
type repeating struct{}

func (repeating) answer(in any) (any, error) {
	refused := func(text string) (any, error) {
		return nil, &smithy.GenericAPIError{Code: "ValidationError", Message: "value '" + text + "' is too short"}
	}
	switch in := in.(type) {
	case *iam.GetLoginProfileInput, *iam.GetServerCertificateInput:
		return nil, fault("NoSuchEntity")
	case *iam.CreateLoginProfileInput:
		return refused(*in.Password)
	case *iam.UploadServerCertificateInput:
		return refused(*in.PrivateKey)
	case *ec2.DescribeLaunchTemplateVersionsInput:
		return nil, fault("InvalidLaunchTemplateName.NotFoundException")
	case *ec2.CreateLaunchTemplateInput:
		plain, _ := base64.StdEncoding.DecodeString(*in.LaunchTemplateData.UserData)
		return refused(*in.LaunchTemplateData.UserData + " " + string(plain))
	}
	return nil, nil
}

// TestErrorsOfAWSHaveNoSecrets lets AWS refuse requests with messages that repeat a password, a private key and user
// data.
func TestErrorsOfAWSHaveNoSecrets(t *testing.T) {
	for function, arguments := range map[string]string{
		"boto_iam.user_present": "{name: u, password: 'hunter2hunter2'}",
		"boto_iam.server_cert_present": "{name: c, public_key: '-----BEGIN CERTIFICATE-----', " +
			"private_key: '-----BEGIN PRIVATE KEY----- hunter2hunter2'}",
		"boto_lc.present": "{name: l, image_id: ami-1, user_data: 'hunter2hunter2 is the token'}",
	} {
		i := newImitation(t, repeating{}, newIAMMembers(0), newScaling(0), newMachines(0))
		cloud, kept := i.cloud(), []string{}
		cloud.Secret = func(all ...string) { kept = append(kept, all...) }
		_, err := tryState(t, cloud, function, arguments, false)
		encoded := base64.StdEncoding.EncodeToString([]byte("hunter2hunter2 is the token"))
		if text := withHint(err); !strings.Contains(text, "ValidationError") || strings.Contains(text, "hunter2hunter2") ||
			strings.Contains(text, encoded) {
			t.Errorf("%s gives %s", function, text)
		}
		if is := strings.Contains(strings.Join(kept, " "), "hunter2hunter2"); is == (function == "boto_lc.present") {
			t.Errorf("the secrets of the run with %s are %q", function, kept)
		}
	}
}

// TestOutputOfCredentialProcessIsNotShown gives the SDK a process whose output it cannot read, with a secret key in it.
func TestOutputOfCredentialProcessIsNotShown(t *testing.T) {
	newImitation(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	dir := t.TempDir()
	for _, output := range []string{`{"Version": 1, "SecretAccessKey": "hunter2hunter2"`, `hunter2hunter2`,
		`{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "hunter2hunter2", "Expiration": "hunter2hunter2"}`,
		`{"Version": "hunter2hunter2"}`, `{"Version": 2, "SecretAccessKey": "hunter2hunter2"}`} {
		file, config := filepath.Join(dir, "output"), filepath.Join(dir, "config")
		if err := os.WriteFile(file, []byte(output), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, []byte("[default]\ncredential_process = cat "+file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("AWS_CONFIG_FILE", config)
		_, err := tryState(t, &aws.Cloud{}, "boto_sqs.present", "{name: q}", true)
		if text := withHint(err); !strings.Contains(text, "credential_process") || strings.Contains(text, "hunter2") {
			t.Errorf("the output %s gives %s", output, text)
		}
	}
}
