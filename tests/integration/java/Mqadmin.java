import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The stock mqadmin, many commands in one JVM: a line of tab-separated arguments each. */
public class Mqadmin {
    public static void main(String[] unused) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = System.out;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream said = new ByteArrayOutputStream();
            PrintStream to = new PrintStream(said, true);
            System.setOut(to);
            System.setErr(to);
            try {
                MQAdminStartup.main0(line.split("\t"), null);
            } catch (Throwable error) {
                error.printStackTrace(to);
            }
            to.flush();
            out.println(said);
            out.println("== end of output ==");
            out.flush();
        }
        // Tools leave threads behind.
        Runtime.getRuntime().halt(0);
    }
}
