package v1alpha1

// PlaintextMode is whether nodes also serve clients without TLS.
//
// +kubebuilder:validation:Enum=Disabled;Enabled
type PlaintextMode string

// Modes of plaintext.
const (
	// PlaintextDisabled serves clients with TLS only.
	PlaintextDisabled PlaintextMode = "Disabled"
	// PlaintextEnabled serves clients without TLS on spec.containerPort, too.
	PlaintextEnabled PlaintextMode = "Enabled"
)

// TLSVersion is a version of TLS.
//
// +kubebuilder:validation:Enum=TLS12;TLS13
type TLSVersion string

// Versions of TLS.
const (
	// TLS12 is TLS 1.2.
	TLS12 TLSVersion = "TLS12"
	// TLS13 is TLS 1.3.
	TLS13 TLSVersion = "TLS13"
)

// ClientCertificateMode is whether clients need a certificate.
//
// +kubebuilder:validation:Enum=Optional;Required
type ClientCertificateMode string

// Modes of client certificates.
const (
	// ClientCertificatesOptional verifies the certificate of a client that has one.
	ClientCertificatesOptional ClientCertificateMode = "Optional"
	// ClientCertificatesRequired refuses clients without a certificate of the CA.
	ClientCertificatesRequired ClientCertificateMode = "Required"
)

// MetricsMode is how nodes serve metrics.
//
// +kubebuilder:validation:Enum=Disabled;Exporter
type MetricsMode string

// Modes of metrics.
const (
	// MetricsDisabled serves no metrics.
	MetricsDisabled MetricsMode = "Disabled"
	// MetricsExporter serves the metrics of memcached_exporter from a sidecar.
	MetricsExporter MetricsMode = "Exporter"
)

// TLS encrypts the connections of clients.
type TLS struct {
	// secretName is the name of the Secret with the certificate of the nodes, in the namespace of the Memcached: tls.crt
	// is the certificate and its chain, tls.key is the private key, both in PEM format, as in Secrets of type
	// kubernetes.io/tls. The certificate must be for the names or addresses by which clients connect. When the Secret
	// changes, nodes serve the new certificate within two minutes and keep running.
	//
	// Required. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// port is the port that nodes and Services listen on with TLS. It must differ from spec.containerPort if plaintext is
	// Enabled.
	//
	// Optional, 1024 to 65535 except 9150 and 11210, which are reserved; 11212 by default. Changing it restarts all
	// nodes, one at a time, and each loses its items.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:validation:XValidation:rule="!(self in [9150, 11210])",message="must not be 9150 or 11210, which are reserved for metrics and administration: use another port, such as 11212"
	Port int32 `json:"port,omitempty"`

	// plaintext is whether nodes also serve clients without TLS, on spec.containerPort: Enabled while clients move to
	// TLS.
	//
	// Optional, Disabled or Enabled; Disabled by default. Changing it restarts all nodes, one at a time, and each loses
	// its items.
	//
	// +optional
	Plaintext PlaintextMode `json:"plaintext,omitempty"`

	// minVersion is the lowest version of TLS that clients may use.
	//
	// Optional, TLS12 or TLS13; TLS12 by default. Changing it restarts all nodes, one at a time, and each loses its
	// items.
	//
	// +optional
	MinVersion TLSVersion `json:"minVersion,omitempty"`

	// clientCertificates makes nodes verify the certificates of clients (mutual TLS).
	//
	// Optional; by default clients need no certificate. Changing it restarts all nodes, one at a time, and each loses its
	// items.
	//
	// +optional
	ClientCertificates ClientCertificates `json:"clientCertificates,omitzero"`
}

// ClientCertificates is how nodes verify the certificates of clients.
//
// +kubebuilder:validation:XValidation:rule="has(self.caSecretName) != has(self.caConfigMapName)",message="must have either caSecretName or caConfigMapName: set one of them to the object with the CA that signs the certificates of clients, in the key ca.crt"
type ClientCertificates struct {
	// mode is whether clients need a certificate. Optional verifies the certificates of clients that have one.
	//
	// Required, Optional or Required. Changing it restarts all nodes, one at a time, and each loses its items.
	//
	// +required
	Mode ClientCertificateMode `json:"mode"`

	// caSecretName is the name of the Secret whose key ca.crt has the CA of the clients' certificates, in PEM format. When
	// the Secret changes, nodes accept the CA within two minutes. A CA that is removed from it stays trusted until the
	// node restarts.
	//
	// Optional; either this or caConfigMapName is required. Changing it restarts all nodes, one at a time, and each loses
	// its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CASecretName string `json:"caSecretName,omitempty"`

	// caConfigMapName is the name of the ConfigMap whose key ca.crt has the CA of the clients' certificates, like
	// caSecretName.
	//
	// Optional; either this or caSecretName is required. Changing it restarts all nodes, one at a time, and each loses
	// its items.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CAConfigMapName string `json:"caConfigMapName,omitempty"`
}

// Metrics is how nodes serve metrics.
type Metrics struct {
	// mode is Exporter for a sidecar that serves the metrics of memcached_exporter on port 9150, named metrics, to
	// everyone who can reach the pod.
	//
	// Optional, Disabled or Exporter; Disabled by default. Changing it restarts all nodes, one at a time, and each loses
	// its items.
	//
	// +optional
	Mode MetricsMode `json:"mode,omitempty"`
}
