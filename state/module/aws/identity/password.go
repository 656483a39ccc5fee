package identity

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/iam"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
)

// signsIn reports whether a user has a password. AWS does not return passwords, so a changed one is not noticed.
func signsIn(ctx context.Context, client *iam.Client, user string) (bool, error) {
	_, err := client.GetLoginProfile(ctx, &iam.GetLoginProfileInput{UserName: &user})
	if cloud.HasCode(err, "NoSuchEntity") {
		return false, nil
	}
	return err == nil, cloud.Failed("looking for the password of user", user, err)
}

// Valid implements module.Validated.
func (m *memberPresent) Valid() error {
	if !m.user && m.Password != "" {
		return diag.Amazon.Hint(errors.New("a group has no password"), "give it to boto_iam.user_present")
	}
	return nil
}

// password plans to set the password of a user that has none.
func (m *memberPresent) password(ctx context.Context, p *cloud.Plan, client *iam.Client, there bool) error {
	if m.Password == "" {
		return nil
	}
	if there {
		if has, err := signsIn(ctx, client, m.Name); has || err != nil {
			return err
		}
	}
	p.Differ("password", nil, "set")
	p.Then("password set", func(ctx context.Context) error {
		_, err := client.CreateLoginProfile(ctx, &iam.CreateLoginProfileInput{UserName: &m.Name, Password: &m.Password})
		if cloud.HasCode(err, "EntityAlreadyExists") { // the list did not show the user yet
			return nil
		}
		return cloud.Failed("setting the password of user", m.Name, err)
	})
	return nil
}
