// What the server tells about itself in the page.

export interface Options {
  version: string;
  /** Whether the browser may have a session that is valid. */
  session: boolean;
  /** Whether anybody may create an account. */
  register: boolean;
  /** Whether reading needs a login. */
  login_for_reads: boolean;
  upload_max_bytes: number;
  /** Extensions of files that can be uploaded, without a dot. */
  upload_extensions: string[];
}

const DEFAULTS: Options = {
  version: "",
  session: false,
  register: false,
  login_for_reads: false,
  upload_max_bytes: 50 * 1024 * 1024,
  upload_extensions: ["txt", "md", "html", "htm", "pdf", "docx"],
};

export const options: Options = { ...DEFAULTS, ...read() };

function read(): Partial<Options> {
  const content = document.querySelector<HTMLMetaElement>('meta[name="lkr-options"]')?.content;
  try {
    return JSON.parse(content ?? "{}") as Partial<Options>;
  } catch {
    return {};
  }
}
