// Buttons, links and form fields.
import type { ButtonHTMLAttributes, ComponentChildren, InputHTMLAttributes } from "preact";
import { useId } from "preact/hooks";
import { t } from "../i18n";
import { copyText } from "./copy";
import { Icon, type IconName } from "./icon";

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "icon" | "size"> & {
  variant?: "primary" | "plain" | "danger" | "quiet";
  icon?: IconName;
  /** Shows that the action runs; the button keeps its focus and does nothing meanwhile. */
  isBusy?: boolean;
  children?: ComponentChildren;
};

export function Button({ variant = "plain", icon, isBusy = false, children, onClick, type, ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={type ?? "button"}
      class={`button ${variant}`}
      aria-busy={isBusy}
      aria-disabled={isBusy || rest.disabled}
      onClick={isBusy ? (event) => event.preventDefault() : onClick}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A button that shows an icon only; `label` is what it is called. */
export function IconButton({ icon, label, ...rest }: Omit<ButtonProps, "children"> & { icon: IconName; label: string }) {
  return <Button variant="quiet" {...rest} icon={icon} aria-label={label} title={label} />;
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (ids: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

/** A label, a control, and what belongs to it. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = [hint ? `${id}-hint` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(described !== "" && { "aria-describedby": described }),
        ...(error && { "aria-invalid": true }),
      })}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="field-error" id={`${id}-error`}>{error}</p>}
    </div>
  );
}

interface InputProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  value: string;
  onInput: (value: string) => void;
  /** The person goes on to something else. */
  onBlur?: () => void;
  type?: "text" | "password" | "date" | "number" | "url" | "search";
  placeholder?: string;
  required?: boolean;
  disabled?: boolean;
  /** Not for passwords and keys: the browser silently cuts what is pasted. */
  maxLength?: number;
  /** A number, or a date such as 2026-11-25. */
  min?: number | string;
  max?: number | string;
  pattern?: string;
  autocomplete?: "off" | "username" | "current-password" | "new-password";
  autocapitalize?: "none";
  spellcheck?: boolean;
  /** The id of a list of suggestions. */
  list?: string;
}

export function TextField({ label, hint, error, value, onInput, type = "text", ...rest }: InputProps) {
  // The library's type wants to know the input's type before the others.
  const attributes = { type, ...rest } as InputHTMLAttributes<HTMLInputElement>;
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => (
        <input {...attributes} {...ids} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
    </Field>
  );
}

interface AreaProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  value: string;
  onInput: (value: string) => void;
  rows?: number;
  placeholder?: string;
  required?: boolean;
  maxLength?: number;
  spellcheck?: boolean;
}

export function TextArea({ label, hint, error, value, onInput, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(ids) => <textarea rows={4} {...rest} {...ids} value={value} onInput={(event) => onInput(event.currentTarget.value)} />}
    </Field>
  );
}

export interface Choice {
  value: string;
  label: string;
}

/** The choices with the one that is chosen, which an address may name before the others are known, or when it is no more. */
export function withChosen(choices: readonly Choice[], chosen: string): readonly Choice[] {
  return choices.some(({ value }) => value === chosen) ? choices : [...choices, { value: chosen, label: chosen }];
}

interface SelectProps {
  label: string;
  hint?: ComponentChildren;
  value: string;
  choices: readonly Choice[];
  onChange: (value: string) => void;
  disabled?: boolean;
}

export function Select({ label, hint, value, choices, onChange, disabled = false }: SelectProps) {
  return (
    <Field label={label} hint={hint}>
      {(ids) => (
        <select {...ids} value={value} disabled={disabled} onChange={(event) => onChange(event.currentTarget.value)}>
          {choices.map((choice) => (
            <option key={choice.value} value={choice.value}>{choice.label}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface CheckboxProps {
  label: ComponentChildren;
  hint?: ComponentChildren;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
}

export function Checkbox({ label, hint, checked, onChange, disabled = false }: CheckboxProps) {
  const id = useId();
  return (
    <div class="checkbox">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}

interface CopyProps {
  text: () => string;
  label: string;
  /** Says whether the text was copied. */
  onDone: (isCopied: boolean) => void;
}

/** A button that copies a text. */
export function CopyButton({ text, label, onDone }: CopyProps) {
  const copy = async (button: HTMLElement) => onDone(await copyText(text(), button));
  return <Button variant="quiet" icon="copy" onClick={(event) => void copy(event.currentTarget)}>{label}</Button>;
}

/** What a form does when it is sent, instead of loading another page. */
export function submitting(action: () => void): (event: Event) => void {
  return (event) => {
    event.preventDefault();
    action();
  };
}

/** The buttons of a form. */
export function FormButtons({ children }: { children: ComponentChildren }) {
  return <div class="form-buttons">{children}</div>;
}

export function Cancel({ onClick }: { onClick: () => void }) {
  return <Button onClick={onClick}>{t("common.cancel")}</Button>;
}
