{{/* The name of everything that a release makes. */}}
{{- define "lkr.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "lkr.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "lkr.labels" -}}
{{ include "lkr.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The role whose pods answer requests. */}}
{{- define "lkr.servingComponent" -}}
{{- if eq .Values.mode "embedded" -}}server{{- else -}}api{{- end -}}
{{- end -}}

{{/* What runs the pods of a part of mode scaled: pods with volumes of their own are those of a StatefulSet. */}}
{{- define "lkr.kind" -}}
{{- if .persistence.enabled -}}StatefulSet{{- else -}}Deployment{{- end -}}
{{- end -}}

{{/* The claim of each pod for the volume of its data folder. Takes the values of persistence. */}}
{{- define "lkr.dataClaim" -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size }}
{{- end -}}

{{/* One pod. Takes a dict of root, component, resources, and of persistence unless that is always on. */}}
{{- define "lkr.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "lkr.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    # Pods are replaced when their configuration changes.
    checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
    {{- with $root.Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "lkr.fullname" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  # The pause container reaps what a killed reader of files leaves behind.
  shareProcessNamespace: true
  # The pause before the stop, and requests (30 s), tasks, deliveries, traces, blocking work and closing the stores.
  terminationGracePeriodSeconds: 70
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: lkr
      image: "{{ $root.Values.image.repository }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}"
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      ports:
        - name: http
          containerPort: 8080
      env:
        - name: LKR_LISTEN
          value: 0.0.0.0:8080
        - name: LKR_DATA_DIR
          value: /data
        {{- if ne .component "server" }}
        - name: LKR_ROLE
          value: {{ .component }}
        {{- end }}
      envFrom:
        - configMapRef:
            name: {{ include "lkr.fullname" $root }}
        {{- with $root.Values.existingSecret }}
        - secretRef:
            name: {{ . }}
        {{- end }}
      # A first start on a volume with data may check the pages of the store.
      startupProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: { path: /healthz, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 2
      lifecycle:
        # Until the service no longer sends requests here.
        preStop:
          sleep:
            seconds: 5
      resources:
        {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: data
          mountPath: /data
        - name: tmp
          mountPath: /tmp
        {{- if $root.Values.certificates.existingConfigMap }}
        - name: certificates
          mountPath: /certificates
          readOnly: true
        {{- end }}
        {{- if $root.Values.model.existingClaim }}
        - name: model
          mountPath: /models
          readOnly: true
        {{- end }}
  volumes:
    {{- if and .persistence (not .persistence.enabled) }}
    # It survives a restart of the container, and ends with the pod.
    - name: data
      emptyDir:
        sizeLimit: 4Gi
    {{- end }}
    - name: tmp
      emptyDir:
        medium: Memory
        sizeLimit: 64Mi
    {{- with $root.Values.certificates.existingConfigMap }}
    - name: certificates
      configMap:
        name: {{ . }}
    {{- end }}
    {{- with $root.Values.model.existingClaim }}
    - name: model
      persistentVolumeClaim:
        claimName: {{ . }}
        readOnly: true
    {{- end }}
  {{- if eq .component "api" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "lkr.selector" $root | nindent 10 }}
          app.kubernetes.io/component: api
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
