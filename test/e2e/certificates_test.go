package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// canary is in every private key that the specs create, as a comment, and in a key of every Secret.
const canary = "canary-4d1f7c"

// keyPair is a certificate with its private key.
type keyPair struct {
	certificate, key []byte // PEM
	parsed           *x509.Certificate
	signer           *ecdsa.PrivateKey
}

// issue returns a certificate for names that an issuer has signed; without an issuer, a CA.
func issue(issuer *keyPair, validFor time.Duration, names ...string) keyPair {
	GinkgoHelper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: serial.String()}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validFor),
		IsCA: issuer == nil, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, by := template, signer
	if issuer != nil {
		parent, by = issuer.parsed, issuer.signer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &signer.PublicKey, by)
	Expect(err).NotTo(HaveOccurred())
	parsed, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	key, err := x509.MarshalPKCS8PrivateKey(signer)
	Expect(err).NotTo(HaveOccurred())
	return keyPair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         append([]byte(canary+"\n"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...),
		parsed:      parsed, signer: signer,
	}
}

// fingerprint returns the SHA-256 fingerprint of a certificate.
func (p keyPair) fingerprint() string {
	sum := sha256.Sum256(p.parsed.Raw)
	return hex.EncodeToString(sum[:])
}

// authority is a CA, another one, and a Secret with certificates of both for the clients of probe/.
type authority struct{ ca, other keyPair }

const identitiesSecret = "identities"

// newAuthority creates the Secret for clients in namespaces.
func newAuthority(ctx context.Context, namespaces ...string) authority {
	GinkgoHelper()
	a := authority{issue(nil, time.Hour), issue(nil, time.Hour)}
	client, strange := issue(&a.ca, time.Hour), issue(&a.other, time.Hour)
	for _, namespace := range namespaces {
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: identitiesSecret},
			Data: map[string][]byte{"ca.crt": a.ca.certificate, "other-ca.crt": a.other.certificate,
				"client.crt": client.certificate, "client.key": client.key,
				"strange.crt": strange.certificate, "strange.key": strange.key}})
	}
	return a
}

// content returns the content of a Secret with a certificate, as cert-manager writes it.
func (a authority) content(pair keyPair) map[string][]byte {
	return map[string][]byte{"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": a.ca.certificate,
		"other": []byte(canary)}
}

// namesIn returns the names of the nodes and the Service of a Memcached, as in config/samples/cert-manager.
func namesIn(namespace, name string) []string {
	return []string{name + "." + namespace + ".svc", "*." + name + "-nodes." + namespace + ".svc"}
}

// put creates or replaces a Secret.
func put(ctx context.Context, namespace, name string, content map[string][]byte) {
	GinkgoHelper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: content}
	if err := kube.Update(ctx, secret); err != nil {
		create(ctx, secret)
	}
}

const identitiesDir = "/identities"

// withIdentities mounts the Secret of an authority into a pod of probe/.
func withIdentities(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Volumes = []corev1.Volume{{Name: identitiesSecret, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: identitiesSecret}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: identitiesSecret, MountPath: identitiesDir}}
	return pod
}
